"""PDF, Word and MediaWiki files for the tests of readers."""

import io
import zipfile
import zlib
from xml.sax.saxutils import escape

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def pdf(text, compress=True):
    """Return a PDF file of one page."""
    return pdf_pages([[(72, 720, text)]], compress=compress)


SCAN = "q 612 0 0 792 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID x EI Q"


def pdf_pages(pages, title="A title", compress=True, trailer=""):
    """Return a PDF file. A page is a list of lines, or a drawing such as SCAN; a line is its place and its text.

    The text is a string, or an array of strings and gaps in thousandths of an em: "[(o) -300 (wn)]".
    """
    drawings = [page if isinstance(page, str) else "\n".join(pdf_line(*line) for line in page) for page in pages]
    first = 4
    numbers = range(first, first + 2 * len(pages), 2)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(b"%d 0 R" % n for n in numbers), len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, drawing in zip(numbers, drawings, strict=True):
        content = drawing.encode("latin-1")
        stream = zlib.compress(content) if compress else content
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (number + 1),
            b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(stream), b" /Filter /FlateDecode" * compress, stream),
        ]
    objects.append(b"<< /Title (%s) >>" % title.encode("latin-1"))
    content, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    size = len(objects) + 1
    start = len(content)
    content += b"xref\n0 %d\n0000000000 65535 f \n" % size
    content += b"".join(b"%010d 00000 n \n" % place for place in places)
    content += b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R %s>>\n" % (size, size - 1, trailer.encode())
    return content + b"startxref\n%d\n%%%%EOF\n" % start


def pdf_line(x, y, text, size=12):
    """Return the drawing of a line of text."""
    shown = f"{text} TJ" if text.startswith("[") else f"({text}) Tj"
    return f"BT /F1 {size} Tf {x} {y} Td {shown} ET"


def write_docx(path, body, parts=None):
    document = f'<?xml version="1.0"?><w:document xmlns:w="{WORD}" xmlns:mc="mc"><w:body>{body}</w:body></w:document>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ({"word/document.xml": document} | (parts or {})).items():
            archive.writestr(name, content)


SITEINFO = """<siteinfo><sitename>W</sitename><namespaces><namespace key="-1" case="first-letter">Speciale</namespace>
<namespace key="0" /><namespace key="4">Progetto</namespace><namespace key="6">Immagine</namespace>
<namespace key="14">Categoria</namespace></namespaces></siteinfo>"""


def page(title, text, number=1, ns="<ns>0</ns>", extra="", before=""):
    return (
        f"<page><title>{escape(title)}</title>{ns}<id>{number}</id>{extra}{before}<revision><id>9</id>"
        f"<timestamp>2020-01-0{number}T00:00:00Z</timestamp><contributor><id>8</id></contributor>"
        f'<text xml:space="preserve">{escape(text)}</text></revision></page>'
    )


def dump(*pages, siteinfo=SITEINFO, version="0.10"):
    root = f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}">'
    return root + siteinfo + "\n".join(pages) + "</mediawiki>"


PAGES = [
    page("Gatto", "Il '''gatto''' [[Immagine:x|y]] & altri.[[Categoria:Felini]][[Category:Animals]]", 1),
    page("Cane", "Il cane.[[Categoria:Canini]]", 2),
]


def xlsx(*sheets):
    """Return an Excel file with sheets of rows of strings and numbers."""
    content = io.BytesIO()
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    numbers = range(1, len(sheets) + 1)
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        names = "".join(f'<sheet name="Sheet{n}" sheetId="{n}" r:id="r{n}"/>' for n in numbers)
        archive.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>{names}</sheets></workbook>'
        )
        targets = "".join(
            f'<Relationship Id="r{n}" Type="{relations}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n in numbers
        )
        package = "http://schemas.openxmlformats.org/package/2006"
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{package}/content-types"></Types>')
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="w" Type="{relations}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{package}/relationships">{targets}</Relationships>'
        )
        for n, rows in zip(numbers, sheets, strict=True):
            cells = "".join(f"<row>{''.join(map(_excel_cell, row))}</row>" for row in rows)
            archive.writestr(
                f"xl/worksheets/sheet{n}.xml", f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>'
            )
    return content.getvalue()


def _excel_cell(value):
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f"<c><v>{value}</v></c>"


def ods(rows):
    """Return an OpenDocument spreadsheet with rows of strings and numbers."""

    def cell(value):
        if isinstance(value, str):
            return f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p></table:table-cell>'
        return f'<table:table-cell office:value-type="float" office:value="{value}"/>'

    space = "urn:oasis:names:tc:opendocument:xmlns:"
    body = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{space}manifest:1.0"></manifest:manifest>'
        )
        archive.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{space}office:1.0" xmlns:table="{space}table:1.0" '
            f'xmlns:text="{space}text:1.0"><office:body><office:spreadsheet><table:table table:name="S">{body}'
            "</table:table></office:spreadsheet></office:body></office:document-content>",
        )
    return content.getvalue()
