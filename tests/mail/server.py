"""An SMTP server that keeps what it gets, for tests: server.py FOLDER starttls|tls|plain [CERTIFICATE KEY].

It prints its port, and writes each mail as FOLDER/N.eml, with the envelope in FOLDER/N.json. With TLS it wants
the user `webfill` with the password `secret`.
"""

import asyncio
import json
import ssl
import sys
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult

folder, secrecy = Path(sys.argv[1]), sys.argv[2]


class Keeper:
    async def handle_DATA(self, server, session, envelope):
        number = len(list(folder.glob("*.eml")))
        received = {"from": envelope.mail_from, "to": envelope.rcpt_tos, "tls": session.ssl is not None or secrecy == "tls"}
        (folder / f"{number}.json").write_text(json.dumps(received))
        partial = folder / f"{number}.partial"
        partial.write_bytes(envelope.original_content)
        partial.rename(folder / f"{number}.eml")
        return "250 kept"


def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (b"webfill", b"secret"))


async def serve():
    context, settings = None, {}
    if secrecy != "plain":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[3], sys.argv[4])
        settings = {"authenticator": authenticate, "auth_required": True}
        if secrecy == "tls":
            settings |= {"auth_require_tls": False}
        else:
            settings |= {"tls_context": context, "require_starttls": True}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(Keeper(), hostname="mx.b.example", loop=loop, **settings),
        "127.0.0.1", 0, ssl=context if secrecy == "tls" else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(serve())
