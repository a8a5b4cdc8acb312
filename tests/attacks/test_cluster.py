"""Other users and machines cannot reach the worker processes that `cluster="local"` starts."""

import socket
import ssl
import sys
import urllib.error
import urllib.request
from itertools import chain
from pathlib import Path

import pytest

from polyseme.data.dask import connected
from polyseme.errors import MissingExtraError

distributed = pytest.importorskip("distributed", reason="needs polyseme[dask]")
pytest.importorskip("cryptography", reason="needs polyseme[dask]")
psutil = pytest.importorskip("psutil", reason="needs polyseme[dask]")

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

_PATIENCE = 60
_TLS_ALERT = 0x15
_PAGES = ("/", "/status", "/health", "/metrics", "/info/main/workers.html", "/json/counts.json", "/api/v1")


def listening_addresses():
    """Return the addresses (ip, port) on which this process and its children listen."""
    own = psutil.Process()
    return {
        connection.laddr
        for process in [own, *own.children(recursive=True)]
        for connection in getattr(process, "net_connections", getattr(process, "connections", None))("inet")
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.fixture(scope="module")
def cluster():
    """Return a client of two local workers, and the addresses on which the cluster listens."""
    before = listening_addresses()
    with connected(2) as client:
        client.wait_for_workers(2)
        yield client, listening_addresses() - before


@pytest.fixture
def client(cluster):
    return cluster[0]


@pytest.fixture
def addresses(cluster):
    return cluster[1]


def rpc_ports(client):
    """Return the ports of scheduler, nannies and workers that take commands.

    The scheduler is asked: `client.scheduler_info()` reads a cache that a timer of the client replaces by one without
    workers.
    """
    workers = client.run_on_scheduler(
        lambda dask_scheduler: [(worker.address, worker.nanny) for worker in dask_scheduler.workers.values()]
    )
    assert workers
    addresses = [client.scheduler.address, *chain.from_iterable(workers)]
    assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
    return [int(address.rpartition(":")[2]) for address in addresses]


def reply_to(connection):
    """Return the answer until the other side closes the connection."""
    connection.sendall(b"\0" * 64)
    reply = b""
    while received := connection.recv(4096):
        reply += received
    return reply


def test_no_port_is_open_to_other_machines(client, addresses):
    assert {ip for ip, _ in addresses} == {"127.0.0.1"}
    assert set(rpc_ports(client)) <= {port for _, port in addresses}


def test_a_client_without_tls_is_refused(client):
    """A port without TLS sends the handshake of distributed; one with TLS sends an alert or nothing."""
    for port in rpc_ports(client):
        with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE) as connection:
            try:
                reply = reply_to(connection)
            except ConnectionError:
                continue
            assert not reply or reply[0] == _TLS_ALERT


@pytest.mark.parametrize("certificate", ["none", "of another cluster"])
def test_a_client_without_the_certificate_is_refused(client, certificate):
    if certificate == "none":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context = distributed.Security.temporary().get_connection_args("client")["ssl_context"]
        context.verify_mode = ssl.CERT_NONE
    for port in rpc_ports(client):
        with (
            socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE) as connection,
            pytest.raises((ssl.SSLError, ConnectionError)),
            context.wrap_socket(connection) as encrypted,
        ):
            reply_to(encrypted)


def test_the_ports_of_http_serve_no_page(client, addresses):
    commands = set(rpc_ports(client))
    others = [port for _, port in addresses if port not in commands]
    assert others
    for port in others:
        for page in _PAGES:
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=_PATIENCE)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_spilled_data_is_private(client):
    """Workers unpickle spilled data, so no other user may write there."""
    for folder in client.run(lambda dask_worker: dask_worker.local_directory).values():
        private = next(parent for parent in Path(folder).parents if parent.name.startswith("polyseme-"))
        assert private.stat().st_mode & 0o077 == 0


def test_without_cryptography_no_unprotected_cluster_starts(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtraError, match="dask"), connected(1):
        raise AssertionError("a cluster without TLS started")
