"""Writes a workbook as XLS to standard output, by xlwt: two sheets with texts, numbers, a date and a formula, and
one that is hidden."""

import datetime
import io
import sys

import xlwt

book = xlwt.Workbook(encoding="utf-8")
sheet = book.add_sheet("Prices")
date = xlwt.easyxf(num_format_str="YYYY-MM-DD")
rows = [
    ["Contract number 4718", "Größe", "日本"],
    ["price", 42.5, 1_000_000],
    [datetime.date(2024, 1, 31), True, xlwt.Formula("B2*2")],
]
for y, row in enumerate(rows):
    for x, value in enumerate(row):
        if isinstance(value, datetime.date):
            sheet.write(y, x, value, date)
        else:
            sheet.write(y, x, value)
# More texts than one record of the shared table holds.
long = book.add_sheet("Long")
for y in range(2_000):
    long.write(y, 0, f"row {y} " + "x" * (y % 50))
long.write(2_000, 0, "y" * 30_000)
hidden = book.add_sheet("Hidden")
hidden.visibility = 1
hidden.write(0, 0, "hidden words")
file = io.BytesIO()
book.save(file)
sys.stdout.buffer.write(file.getvalue())
