"""Threat 30: a proxy in front of the service, nginx and Caddy among them, hides no visitor."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.service.test_serve import role, wait_for
from tests.support.chaos import free_port
from tests.support.programs import need

from shoal.errors import InvalidInputError
from shoal.service.dashboard.sessions import MAX_FAILURES
from shoal.service.embedded import read_tokens
from shoal.service.settings import load_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
HOST = "shoal.example"


@contextmanager
def aggregator(folder: Path, **settings: str) -> Iterator[tuple[str, str]]:
    """The address of a service, and the token of an analyst."""
    port = free_port()
    own = {"SHOAL_DATA": str(folder / "data"), "SHOAL_AGGREGATOR_PORT": str(port)}
    with role("aggregator", **own, **settings):
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/health")
        yield url, read_tokens(folder / "data" / "tokens.env")["analyst"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """What stands behind both proxies; their visitors come from addresses of their own."""
    with aggregator(tmp_path_factory.mktemp("service")) as started:
        yield started


def visitor(address: str, *, verify: ssl.SSLContext | bool = True) -> httpx.Client:
    """Someone at another address of this machine."""
    transport = httpx.HTTPTransport(local_address=address, verify=verify)
    return httpx.Client(transport=transport, timeout=120, headers={"Host": HOST})


def nginx(folder: Path, port: int, service: str) -> list[str]:
    site = (DEPLOY / "nginx.conf").read_text()
    site = site.replace("listen 443", f"listen 127.0.0.1:{port}")
    site = site.replace("http://127.0.0.1:8000", service).replace("/etc/ssl/", f"{folder}/")
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n"
        f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n"
        f"{site} }}\n"
    )
    return ["nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def caddy(folder: Path, port: int, service: str) -> list[str]:
    site = (DEPLOY / "Caddyfile").read_text().replace("/etc/ssl/", f"{folder}/")
    site = site.replace("127.0.0.1:8000", service.removeprefix("http://"))
    head = "{\n\tadmin off\n\tauto_https off\n\tstorage file_system " + f"{folder}/caddy\n}}\n"
    named = site.replace(f"{HOST} {{", f"https://{HOST}:{port} {{\n\tbind 127.0.0.1")
    (folder / "Caddyfile").write_text(head + named)
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


@pytest.mark.parametrize(
    ("program", "configure", "addresses"),
    [("nginx", nginx, ("127.0.0.2", "127.0.0.3")), ("caddy", caddy, ("127.0.0.4", "127.0.0.5"))],
    ids=["nginx", "caddy"],
)
def test_threat_30_a_proxy_hides_the_visitor(
    tmp_path: Path,
    service: tuple[str, str],
    program: str,
    configure: Callable[[Path, int, str], list[str]],
    addresses: tuple[str, str],
) -> None:
    """The example in deploy/, as it is: secure cookies, and each visitor counted alone."""
    need(program, "openssl")
    certificate = tmp_path / "shoal.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}",
         "-keyout", str(tmp_path / "shoal.key"), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    port = free_port()
    trusting = ssl.create_default_context(cafile=str(certificate))
    url_behind, token = service
    with (tmp_path / "log").open("wb") as log:
        command = configure(tmp_path, port, url_behind)
        proxy = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
        try:
            url, named = f"https://127.0.0.1:{port}", {"sni_hostname": HOST}
            with (
                visitor(addresses[0], verify=trusting) as one,
                visitor(addresses[1], verify=trusting) as other,
            ):
                _wait(one, f"{url}/health", named, tmp_path / "log")
                guess_until_refused(
                    lambda guess: one.post(  # with addresses of its own making
                        f"{url}/login", data={"token": "x"}, extensions=named,
                        headers={"X-Forwarded-For": f"192.0.2.{guess}"},
                    )
                )  # fmt: skip
                answer = other.post(f"{url}/login", data={"token": token}, extensions=named)
                assert answer.status_code == 303
                cookie = answer.headers["set-cookie"]
                assert cookie.startswith("__Host-shoal_session=")
                assert {"secure", "path=/", "httponly"} <= set(cookie.lower().split("; "))
                assert other.get(f"{url}/", extensions=named).status_code == 200
                assert "max-age" in answer.headers["strict-transport-security"]
        finally:
            proxy.terminate()
            proxy.wait(120)
    assert shutil.which(program)


def guess_until_refused(guess: Callable[[int], httpx.Response]) -> None:
    """Guess as often as it takes: failures are counted anew in every minute of the clock."""
    for number in range(5 * MAX_FAILURES):
        if guess(number).status_code == 429:
            assert number >= MAX_FAILURES
            return
    raise AssertionError("guesses are not limited")


def _wait(client: httpx.Client, url: str, named: dict[str, str], log: Path) -> None:
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        try:
            if client.get(url, extensions=named).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(log.read_text())


def test_threat_30_only_a_trusted_proxy_says_who_asks_and_how(tmp_path: Path) -> None:
    claim = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}
    trusted = {"SHOAL_AGGREGATOR_TRUSTED_PROXIES": "127.0.0.2, 127.8.0.0/16"}
    with aggregator(tmp_path, **trusted) as (url, token):
        names = {}
        for address in ("127.0.0.1", "127.0.0.2", "127.8.1.1", "127.0.0.3"):
            with visitor(address) as proxy:
                answer = proxy.post(f"{url}/login", data={"token": token}, headers=claim)
                names[address] = answer.headers["set-cookie"].partition("=")[0]
        secure, plain = "__Host-shoal_session", "shoal_session"
        assert list(names.values()) == [plain, secure, secure, plain]
        with visitor("127.0.0.2") as proxy:  # one visitor's guesses are not another's
            guess_until_refused(
                lambda _: proxy.post(f"{url}/login", data={"token": "x"}, headers=claim)
            )
            other = claim | {"X-Forwarded-For": "192.0.2.8"}
            sent = proxy.post(f"{url}/login", data={"token": token}, headers=other)
            assert sent.status_code == 303


def test_cookies_can_be_secure_whatever_a_proxy_says(tmp_path: Path) -> None:
    with aggregator(tmp_path, SHOAL_AGGREGATOR_SECURE_COOKIES="always") as (url, token):
        answer = httpx.post(f"{url}/login", data={"token": token})
        assert answer.headers["set-cookie"].startswith("__Host-shoal_session=")
        assert "secure" in answer.headers["set-cookie"].lower()
        secret = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
        for name, status in (("__Host-shoal_session", 200), ("shoal_session", 303)):
            assert httpx.get(url, headers={"Cookie": f"{name}={secret}"}).status_code == status


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("TRUSTED_PROXIES", "proxy.example", "trusted_proxies must be addresses or networks"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "trusted_proxies must be addresses or networks"),
        ("TRUSTED_PROXIES", "*", "trusted_proxies must be addresses or networks"),
        ("SECURE_COOKIES", "yes", "secure_cookies must be auto or always; got 'yes'"),
        ("PORT", "9" * 5000, "port must be a whole number"),
    ],
)
def test_wrong_settings_of_proxies_are_refused(name: str, value: str, rule: str) -> None:
    with pytest.raises(InvalidInputError, match=rule):
        load_settings({f"SHOAL_AGGREGATOR_{name}": value})
