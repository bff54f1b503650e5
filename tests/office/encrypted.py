"""Writes PDFs that are encrypted in each way, by qpdf, into the folder `encrypted` beside this file: with the empty
password, which every reader tries first, and with another one. They are kept, so that tests need no qpdf."""

import pathlib
import subprocess
import tempfile

WAYS = {
    "rc4_40": ["40"],
    "rc4_128": ["128", "--use-aes=n"],
    "aes_128": ["128", "--use-aes=y"],
    "aes_256": ["256"],
    "aes_256_r5": ["256", "--force-R5"],
}
CONTENT = b"BT /F1 12 Tf 72 720 Td (Contract number 4711) Tj ET"
OBJECTS = [
    b"<</Type/Catalog/Pages 2 0 R>>",
    b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
    b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
    b"<</Length %d>>\nstream\n%s\nendstream" % (len(CONTENT), CONTENT),
    b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    b"<</Title(A paper)>>",
]


def plain():
    written = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(OBJECTS, 1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(OBJECTS) + 1
    trailer = b"trailer\n<</Size %d/Root 1 0 R/Info 6 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (count, len(written))
    return written + b"xref\n0 %d\n0000000000 65535 f \n%s" % (count, table) + trailer


folder = pathlib.Path(__file__).parent / "encrypted"
folder.mkdir(exist_ok=True)
with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
    file.write(plain())
    file.flush()
    for name, way in WAYS.items():
        for password, kind in [("", "empty"), ("secret", "secret")]:
            written = folder / f"{name}_{kind}.pdf"
            command = ["qpdf", "--allow-weak-crypto", "--static-id"]
            command += ["--encrypt", password, "owner", *way, "--", file.name, str(written)]
            subprocess.run(command, check=True)
