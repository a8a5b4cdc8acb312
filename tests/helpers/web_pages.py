"""Web pages of different kinds with their main text, for tests of the HTML reader and its benchmark."""

from html import escape

STORY = [
    "The harbor of the old town will be closed for two years while its walls are rebuilt, the council said on Monday.",
    "Engineers found cracks in the northern pier after the storms of last winter, and divers confirmed that the wooden "
    "piles below it have rotted.",
    "Fishing boats will move to a temporary quay in the river, which the ferry company has lent to the town.",
    "“We lose a summer, but we keep the harbor,” said the mayor, who had asked the government for money since spring.",
    "Shopkeepers along the waterfront fear that visitors will stay away, although the museum and the market stay open.",
]
POSTS = [
    "My sourdough does not rise since I moved to a house with hard water. Could the minerals be the reason?",
    "I doubt it. Yeast likes minerals; check the temperature of your kitchen first, mine needs at least 24 degrees.",
    "Agree with the thermometer. Also feed the starter twice a day for a week and use rye flour for half of it.",
    "It was the temperature! On top of the fridge the dough doubled in five hours. Thank you both.",
]
MENU = ["Home", "World", "Politics", "Business", "Sport", "Culture", "Weather", "Video"]
COOKIES = (
    "We and our 843 partners use cookies and similar technologies to store and access information on your device, to "
    "personalize ads and to measure audiences. You can accept all cookies or manage your consent at any time."
)
RELATED = ["Ten recipes for rainy evenings", "Why this old bridge never fell", "Quiz: how well do you know rivers?"]


def _paragraphs(texts):
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def _links(names, tag="li"):
    return "".join(f'<{tag}><a href="/{number}">{escape(name)}</a></{tag}>' for number, name in enumerate(names))


def _page(body, title="", head=""):
    return f'<!doctype html><html lang="en"><head><title>{escape(title)}</title>{head}</head><body>{body}</body></html>'


def news_article():
    """Semantic elements: navigation, cookie dialog, share buttons, related links, newsletter form, footer."""
    body = f"""<a class="skip-link" href="#c">Skip to content</a>
<div id="cookie-banner" role="dialog"><p>{COOKIES}</p><button>Accept all</button><button>Reject</button></div>
<header><div class="logo">The Daily Coast</div><nav><ul>{_links(MENU)}</ul></nav></header>
<main id="c"><article><header><h1>Harbor walls to be rebuilt</h1><p class="byline">By Ada Writer</p></header>
<div class="share-buttons"><a href="#">Share on Facebook</a> <a href="#">Tweet</a> <a href="#">Copy link</a></div>
{_paragraphs(STORY[:3])}
<aside class="related"><h2>Read more</h2><ul>{_links(RELATED)}</ul></aside>
<figure><img src="a.jpg" alt="Pier"><figcaption>The northern pier in January.</figcaption></figure>
{_paragraphs(STORY[3:])}</article>
<form action="/newsletter"><label>Get our newsletter every morning</label><input type="email"><button>Sign up</button>
</form></main>
<footer><ul>{_links(["Imprint", "Privacy policy", "Contact", "Careers"])}</ul><p>© 2024 Coast Media Group. All rights
reserved.</p></footer><script>var tracking = "cookies";</script>"""
    head = '<meta property="og:title" content="Harbor walls to be rebuilt">'
    main = ["Harbor walls to be rebuilt", "By Ada Writer", *STORY, "The northern pier in January."]
    return _page(body, "Harbor walls to be rebuilt | The Daily Coast", head), " ".join(main)


def article_of_divs():
    """An older news page: only div elements with classes."""
    body = f"""<div class="consent-overlay"><div>{COOKIES}</div><a href="#">OK</a></div>
<div id="top"><a href="/">The Daily Coast</a></div><div class="menu">{_links(MENU, "span")}</div>
<div class="breadcrumbs"><a href="/">Home</a> &gt; <a href="/w">World</a> &gt; <a href="/t">Towns</a></div>
<div id="wrapper"><div class="col-left"><div class="story"><h1>Harbor walls to be rebuilt</h1>{_paragraphs(STORY)}</div>
<div class="story-comments-teaser"><a href="#c">Join the discussion</a></div></div>
<div class="sidebar"><h3>Most read</h3>{_links(RELATED, "div")}<div class="ad">Advertisement: buy new boots today and
save half of the price</div></div></div>
<div class="footer">{_links(["Imprint", "Privacy policy", "Contact"], "span")}<br>Copyright 2009 Coast Media</div>"""
    return _page(body, "Harbor walls to be rebuilt"), " ".join(["Harbor walls to be rebuilt", *STORY])


def documentation():
    """A page of a manual: sidebar with the table of contents, code, a short section list, next and previous."""
    contents = ["Installation", "Quick start", "Reading files", "Fitting models", "Plots", "Command line", "Changes"]
    text = [
        "The function load reads a table from a file and returns its rows one after the other.",
        "A file may be compressed; the compression is found from its first bytes and not from its name.",
        "Rows that cannot be parsed are counted and skipped, and the counter is returned with the last row.",
    ]
    body = f"""<header class="navbar"><a href="/">Tables 2.1</a><form role="search"><input placeholder="Search docs">
<button>Search</button></form></header>
<div class="layout"><nav class="sidebar toc"><p>Contents</p><ul>{_links(contents)}</ul></nav>
<main><h1>Reading files</h1>{_paragraphs(text[:1])}<pre><code>for row in load("data.csv"): print(row)</code></pre>
<h2>Compressed files</h2>{_paragraphs(text[1:2])}<h2>Damaged rows</h2>{_paragraphs(text[2:])}
<table><tr><th>Option</th><th>Meaning</th></tr><tr><td>strict</td><td>raise an error instead</td></tr></table>
<nav class="pager"><a href="a">Previous: Quick start</a> <a href="b">Next: Fitting models</a></nav></main></div>
<footer><p>Built with a static site generator. Last updated on 3 May 2024.</p></footer>"""
    main = [
        "Reading files", text[0], 'for row in load("data.csv"): print(row)', "Compressed files", text[1],
        "Damaged rows", text[2], "Option Meaning strict raise an error instead",
    ]  # fmt: skip
    return _page(body, "Reading files — Tables 2.1 documentation"), " ".join(main)


def forum():
    """A thread: each post is an article with its author; the posts have classes of comments."""
    posts = "".join(
        f'<article class="comment post"><div class="author">baker{number}</div><div class="comment-body"><p>{post}</p>'
        '</div><ul class="post-actions"><li><a href="#">Reply</a></li><li><a href="#">Report</a></li></ul></article>'
        for number, post in enumerate(POSTS)
    )
    body = f"""<header><a href="/">Bread Forum</a><nav><ul>{_links(["Forums", "Members", "Log in", "Register"])}</ul>
</nav></header><div class="thread"><h1>Dough does not rise</h1>{posts}</div>
<aside><h3>Similar threads</h3><ul>{_links(RELATED)}</ul></aside><footer>Powered by a forum program</footer>"""
    main = ["Dough does not rise", *(f"baker{number} {post}" for number, post in enumerate(POSTS))]
    return _page(body, "Dough does not rise - Bread Forum"), " ".join(main)


def blog():
    """A post with comments of readers, which are not its text, and widgets."""
    comments = "".join(f'<li class="comment"><b>Reader {n}</b><p>{text}</p></li>' for n, text in enumerate(POSTS[1:3]))
    body = f"""<div class="site-header"><h1 class="site-title"><a href="/">Notes from the coast</a></h1>
<div class="main-navigation"><ul>{_links(["About", "Archive", "Contact"])}</ul></div></div>
<div class="content-area"><div class="entry post"><h2 class="entry-title">A summer without boats</h2>
<div class="entry-meta">Posted on 3 May 2024</div><div class="entry-content">{_paragraphs(STORY)}</div>
<div class="tags">Tags: {_links(["harbor", "town", "storms"], "span")}</div></div>
<div id="comments"><h3>2 thoughts on this post</h3><ol>{comments}</ol><form><p>Leave a reply. Your email address will
not be published.</p><textarea></textarea></form></div></div>
<div class="widget-area"><h3>Recent posts</h3><ul>{_links(RELATED)}</ul><h3>Archives</h3><ul>
{_links(["May 2024", "April 2024", "March 2024"])}</ul></div>"""
    main = ["A summer without boats", "Posted on 3 May 2024", *STORY]
    return _page(body, "A summer without boats"), " ".join(main)


def plain():
    """A page of the nineties without any structure: all of it is text."""
    body = (
        f"<h1>My harbor page</h1>{STORY[0]}<br><br>{STORY[1]}<p>{STORY[2]}<p>See also <a href='b.html'>my other "
        f"page</a> and <a href='c.html'>the map</a>.<hr>{STORY[3]}<br>Last change: May 1997. "
        "<a href='mailto:a@b'>Write to me</a>"
    )
    main = [
        "My harbor page", *STORY[:3], "See also my other page and the map.", STORY[3], "Last change: May 1997.",
        "Write to me",
    ]  # fmt: skip
    return f"<html><body>{body}", " ".join(main)


def tables():
    """A page whose text is a table."""
    rows = [("Lake", "Area", "Remarks")] + [
        (f"{name} Lake", str(17 * n + 3), f"{fish} live in it and its water is {color}")
        for n, (name, fish, color) in enumerate(
            zip(
                ["Blue", "Long", "Stone", "Crane", "Mill", "Upper", "Lower", "Black"],
                ["Trout", "Perch", "Pike", "Carp", "Eels", "Roach", "Zander", "Burbot"],
                ["clear", "brown", "green", "cold", "shallow", "deep", "warm", "dark"],
                strict=True,
            )
        )
    ]
    cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    intro = "The lakes of the district and the fish that were counted in them."
    body = f"""<header><nav><ul>{_links(MENU)}</ul></nav></header><main><h1>Lakes</h1><p>{intro}</p>
<table>{cells}</table></main><footer><p>District office, Room 12</p></footer>"""
    return _page(body, "Lakes"), " ".join(["Lakes", intro, *(" ".join(row) for row in rows)])


def listing():
    """A page that is mostly a list, with links in most of its items."""
    names = ["Ash", "Beech", "Birch", "Elm", "Larch", "Maple", "Oak", "Pine", "Rowan", "Spruce", "Willow", "Yew"]
    items = "".join(f'<li><a href="/{name}">{name} tree</a></li>' for name in names[:8])
    items += "".join(f'<li><a href="/{name}">{name}</a>, which grows in wet soil</li>' for name in names[8:])
    body = f"""<div class="nav">{_links(MENU, "span")}</div><h1>Trees of the park</h1><ul>{items}</ul>
<div class="footer"><a href="/i">Imprint</a> <a href="/p">Privacy</a></div>"""
    main = ["Trees of the park"] + [f"{name} tree" for name in names[:8]]
    main += [f"{name}, which grows in wet soil" for name in names[8:]]
    return _page(body, "Trees of the park"), " ".join(main)


def short_notice():
    """A notice that is shorter than the rest of its page."""
    text = "The library is closed on Friday because of the town festival."
    body = f"""<header><nav><ul>{_links(MENU)}</ul></nav></header><div class="cookie-notice">{COOKIES}</div>
<main><h1>Closed on Friday</h1><p>{text}</p></main><footer><p>Town library, Market Square 1. Opening hours: Monday to
Friday from 9 to 18, Saturday from 9 to 13. {COOKIES}</p></footer>"""
    return _page(body, "Closed on Friday"), f"Closed on Friday {text}"


def application():
    """A form of an application around the text, as ASP.NET writes it; the classes of the body name its parts."""
    body = f"""<body class="has-sidebar with-cookie-banner comments-open"><form id="aspnetForm" method="post">
<div role="navigation">{_links(MENU, "div")}</div><div role="main"><h1>Harbor walls to be rebuilt</h1>
{_paragraphs(STORY)}</div><div role="contentinfo">Copyright of the town</div></form>"""
    return f"<html><head><title>Harbor</title></head>{body}", " ".join(["Harbor walls to be rebuilt", *STORY])


PAGES = {
    page.__name__: page
    for page in (
        news_article, article_of_divs, documentation, forum, blog, plain, tables, listing, short_notice, application,
    )
}  # fmt: skip
