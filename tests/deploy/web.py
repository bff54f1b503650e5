#!/usr/bin/env python3
"""A small web on a loopback address: pages, a document, and a page whose link only its script makes."""

import http.server

TEXT = b"BT /F1 24 Tf 72 720 Td (Ada Lovelace) Tj ET"


def pdf() -> bytes:
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(TEXT), TEXT),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return out + head + table + tail


SCRIPTED = b"""<!doctype html><title>Scripted</title><body><script>
setTimeout(() => { document.body.innerHTML = '<a href="/made-by-script">next</a>'; }, 100);
</script>"""

PAGES = {
    "/plain": ("text/html", b"<!doctype html><title>Plain</title><p>Hello"),
    "/made-by-script": ("text/html", b"<!doctype html><title>Made</title><p>Hello"),
    "/scripted": ("text/html", SCRIPTED),
    "/document": ("application/pdf", pdf()),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, body = PAGES.get(self.path.split("?")[0], ("text/plain", b""))
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
