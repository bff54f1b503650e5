#!/usr/bin/env python3
"""Prints the text of the PDF on standard input, as PDFium reads it: pdfium_text.py LIBRARY. Status 1: it cannot be opened."""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
for name in ("FPDF_LoadMemDocument64", "FPDF_LoadPage", "FPDFText_LoadPage"):
    getattr(library, name).restype = ctypes.c_void_p
library.FPDF_InitLibrary()
data = sys.stdin.buffer.read()
document = library.FPDF_LoadMemDocument64(data, ctypes.c_size_t(len(data)), None)
if not document:
    sys.exit(1)
document = ctypes.c_void_p(document)
for number in range(library.FPDF_GetPageCount(document)):
    page = ctypes.c_void_p(library.FPDF_LoadPage(document, number))
    text = ctypes.c_void_p(library.FPDFText_LoadPage(page)) if page else None
    if not text:
        continue
    count = library.FPDFText_CountChars(text)
    units = ctypes.create_string_buffer(4 * count + 2)
    written = library.FPDFText_GetText(text, 0, count, units)
    page_text = units.raw[: 2 * max(written - 1, 0)].decode("utf-16-le", errors="replace")
    sys.stdout.buffer.write(page_text.encode(errors="replace") + b"\n")
    library.FPDFText_ClosePage(text)
    library.FPDF_ClosePage(page)
