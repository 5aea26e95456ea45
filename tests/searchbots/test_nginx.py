"""The example for nginx, run by Debian's nginx with its Lua module: both ways in count every decision once."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from running import Exporter
from searchbots.logwriting import BROWSER, GOOGLE
from waiting import until

EXAMPLE = Path(__file__).parents[2] / "exporter" / "install" / "nginx"
MODULES = Path("/usr/lib/nginx/modules")
NEEDED = (MODULES / "ndk_http_module.so", MODULES / "ngx_http_lua_module.so")
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")

pytestmark = pytest.mark.skipif(
    NGINX is None or not all(module.exists() for module in NEEDED),
    reason="needs Debian's nginx and libnginx-mod-http-lua: apt-get install nginx libnginx-mod-http-lua",
)

SERVER = """
        server {{
            listen 127.0.0.1:{port};
            server_name {domain};
            set $crawlhealth_bot "";
            set $crawlhealth_target "";
            set $crawlhealth_decision "";
            {way}
            location / {{
                access_by_lua_block {{ require("dispatcher").decide() }}
                content_by_lua_block {{ ngx.say("home") }}
            }}
        }}
"""
LOGGED = "access_log shop.json crawlhealth;"
POSTED = """log_by_lua_block {
                local said = ngx.var
                require("crawlhealth").note(
                    said.server_name, said.crawlhealth_bot, said.crawlhealth_target, said.crawlhealth_decision)
            }"""
DISPATCHER = """
return {
    decide = function()
        local said = ngx.var
        if not (said.http_user_agent or ""):find("Googlebot", 1, true) then
            return
        end
        said.crawlhealth_bot = "Googlebot"
        if said.uri == "/home" then
            said.crawlhealth_decision = "stayed"
            return
        end
        said.crawlhealth_target = said.uri == "/spare" and "spare" or "https://money.example" .. said.uri
        said.crawlhealth_decision = "sent"
        return ngx.redirect("https://money.example" .. said.uri)
    end,
}
"""
CONFIG = """
    searchbots:
      tenants: {acme: {domains: [shop.example, www.shop.example], tokens: [{env: ACME}]}}
      logs: [{path: nginx/shop.json, format: nginx_json, tenant: acme, domain: shop.example}]
      targets:
        money: {url: 'https://money.example/', tenant: acme, weight: 3, quota: {day: 500}}
        spare: {url: 'http://127.0.0.1:1/', tenant: acme, weight: 1}
      resolver: {servers: ['127.0.0.1:1']}
      domains: {redirects: false, expiry: false}
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Nginx:
    """An nginx with the example in a folder of its own, which posts to an exporter's port."""

    def __init__(self, folder: Path, exporter: int) -> None:
        self.folder, self.port = folder, free_port()
        (folder / "crawlhealth").mkdir(parents=True)
        shutil.copy(EXAMPLE / "crawlhealth.lua", folder / "crawlhealth")
        (folder / "crawlhealth" / "dispatcher.lua").write_text(DISPATCHER)
        self.token("not-yet")
        part = (EXAMPLE / "crawlhealth.conf").read_text()
        part = part.replace("/etc/nginx/crawlhealth", str(folder / "crawlhealth"))
        part = part.replace("port = 9877,", f"port = {exporter}, every = 0.2,")
        (folder / "crawlhealth.conf").write_text(part)
        servers = "".join(
            SERVER.format(port=self.port, domain=domain, way=way)
            for domain, way in (("shop.example", LOGGED), ("www.shop.example", POSTED))
        )
        temporary = " ".join(f"{kind}_temp_path {folder / kind};" for kind in
                             ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))  # fmt: skip
        (folder / "nginx.conf").write_text(
            ("user root;\n" if os.geteuid() == 0 else "")  # else its workers may not read this folder
            + "".join(f"load_module {module};\n" for module in NEEDED)
            + f"worker_processes 2;\nerror_log {folder / 'error.log'} info;\npid {folder / 'nginx.pid'};\ndaemon off;\n"
            + f"events {{}}\nhttp {{ access_log off; {temporary}\n include crawlhealth.conf;\n{servers} }}\n"
        )

    def token(self, token: str) -> None:
        (self.folder / "crawlhealth" / "token").write_text(token + "\n")

    def log(self) -> str:
        return (self.folder / "error.log").read_text()

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        assert NGINX is not None
        process = subprocess.Popen([NGINX, "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")])
        try:
            until(self._answers, 20, "nginx answers", lambda: str(process.poll()))
            yield process
        finally:
            process.send_signal(signal.SIGQUIT)
            assert process.wait(20) == 0

    def visit(self, host: str, path: str, agent: str = GOOGLE) -> int:
        headers = {"Host": host, "User-Agent": agent}
        url = f"http://127.0.0.1:{self.port}{path}"
        return requests.get(url, headers=headers, allow_redirects=False, timeout=10).status_code

    def _answers(self) -> bool:
        try:
            return self.visit("shop.example", "/", BROWSER) == 200
        except requests.ConnectionError:
            return False


def test_decisions_come_by_the_log_and_by_summaries_and_wait_for_the_right_token(tmp_path: Path) -> None:
    (tmp_path / "nginx").mkdir()
    with Exporter(tmp_path, CONFIG, environ={"ACME": "acme-token"}) as exporter:
        nginx = Nginx(tmp_path / "nginx", int(exporter.url.rpartition(":")[2]))

        def counted(domain: str, target: str, decision: str) -> float | None:
            labels = {"domain": domain, "bot": "Googlebot", "target": target, "decision": decision}
            return exporter.value("crawlhealth_searchbot_dispatches_total", **{k: v for k, v in labels.items() if v})

        with nginx.running() as process:
            for domain in ("shop.example", "www.shop.example"):
                for path, times in (("/page", 6), ("/spare", 2), ("/home", 3)):
                    status = {nginx.visit(domain, path) for _ in range(times)}
                    assert status == ({200} if path == "/home" else {302})
                nginx.visit(domain, "/page", BROWSER)
            until(lambda: counted("shop.example", "money", "sent") == 6, 10, "the log is read", exporter.log)
            until(lambda: "a summary waits: 401" in nginx.log(), 10, "the wrong token is refused", nginx.log)
            assert counted("www.shop.example", "money", "sent") is None
            nginx.token("acme-token")
            process.send_signal(signal.SIGHUP)
            until(lambda: counted("www.shop.example", "money", "sent") == 6, 20, "summaries are taken", nginx.log)
            for domain in ("shop.example", "www.shop.example"):
                assert counted(domain, "spare", "sent") == 2
                assert counted(domain, "", "stayed") == 3
            assert exporter.value("crawlhealth_target_quota_used", target="money") == 12
            assert exporter.value("crawlhealth_searchbot_share_ratio", target="spare") == 0.25
            assert exporter.value("crawlhealth_searchbot_share_expected_ratio", target="spare") == 0.25
        assert "[error]" not in nginx.log()
