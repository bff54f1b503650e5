"""Writes a document to standard output, by the program that people use for it from Python: tables.py xlsx|xls|ods|docx.

The sheets have a row for each entry of cells.json: its number, an empty cell, and its value in its format."""

import datetime
import io
import json
import pathlib
import sys

CELLS = json.loads((pathlib.Path(__file__).parent / "cells.json").read_text())


def value_of(cell):
    """As Python has it."""
    kind, value = cell["kind"], cell["value"]
    if kind == "date":
        return datetime.date.fromisoformat(value)
    if kind == "datetime":
        return datetime.datetime.fromisoformat(value)
    if kind == "time":
        return datetime.time.fromisoformat(value)
    return value


def xlsx(file):
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Cells"
    for number, cell in enumerate(CELLS, 1):
        sheet.cell(number, 1, f"cell {number}")
        written = sheet.cell(number, 3, value_of(cell))
        written.number_format = cell["format"]
        if cell["kind"] == "text":
            written.data_type = "s"
    second = book.create_sheet("Second")
    second["B2"] = "away from the corner"
    book.save(file)


def xls(file):
    import xlwt

    book = xlwt.Workbook(encoding="utf-8")
    sheet = book.add_sheet("Cells")
    for number, cell in enumerate(CELLS, 1):
        sheet.write(number - 1, 0, f"cell {number}")
        sheet.write(number - 1, 2, value_of(cell), xlwt.easyxf(num_format_str=cell["format"]))
    second = book.add_sheet("Second")
    second.write(1, 1, "away from the corner")
    book.save(file)


def ods(file):
    from odf.opendocument import OpenDocumentSpreadsheet
    from odf.table import Table, TableCell, TableRow
    from odf.text import P

    def stored(cell):
        kind, value = cell["kind"], cell["value"]
        if kind == "text":
            return {"valuetype": "string"}
        if kind == "bool":
            return {"valuetype": "boolean", "booleanvalue": str(value).lower()}
        if kind in ("date", "datetime"):
            return {"valuetype": "date", "datevalue": value}
        if kind in ("time", "duration"):
            hours, minutes, seconds = cell["text"].split(":")
            return {"valuetype": "time", "timevalue": f"PT{hours}H{minutes}M{seconds}S"}
        kind = {"number": "float", "percent": "percentage"}.get(kind, kind)
        return {"valuetype": kind, "value": cell["text"]}

    book = OpenDocumentSpreadsheet()
    table = Table(name="Cells")
    for number, cell in enumerate(CELLS, 1):
        row = TableRow()
        first = TableCell(valuetype="string")
        first.addElement(P(text=f"cell {number}"))
        row.addElement(first)
        row.addElement(TableCell())
        value = TableCell(**stored(cell))
        value.addElement(P(text=cell["value"] if cell["kind"] == "text" else "as it is shown"))
        row.addElement(value)
        row.addElement(TableCell(numbercolumnsrepeated="16381"))
        table.addElement(row)
    filler = TableRow(numberrowsrepeated="1048000")
    filler.addElement(TableCell(numbercolumnsrepeated="16384"))
    table.addElement(filler)
    book.spreadsheet.addElement(table)
    second = Table(name="Second")
    second.addElement(TableRow())
    row = TableRow()
    row.addElement(TableCell())
    cell = TableCell(valuetype="string")
    cell.addElement(P(text="away from the corner"))
    row.addElement(cell)
    second.addElement(row)
    book.spreadsheet.addElement(second)
    book.write(file)


def docx(file):
    import docx as library
    from docx.oxml import OxmlElement

    document = library.Document()
    section = document.sections[0]
    section.header.paragraphs[0].text = "Page header"
    section.different_first_page_header_footer = True
    section.first_page_header.paragraphs[0].text = "Page header"
    section.footer.paragraphs[0].text = "Page footer"
    paragraph = document.add_paragraph("Call 555")
    paragraph.runs[0]._r.append(OxmlElement("w:noBreakHyphen"))
    paragraph.add_run("1234, 1")
    paragraph.runs[1]._r.append(OxmlElement("w:noBreakHyphen"))
    paragraph.add_run("24 hours")
    soft = document.add_paragraph("Co\u00adope")
    soft.runs[0]._r.append(OxmlElement("w:softHyphen"))
    soft.add_run("ration")
    document.add_paragraph("one\ttab\nnext line")
    table = document.add_table(rows=3, cols=3)
    for y, row in enumerate([["name", "", "price"], ["x", "middle", ""], ["over two", "", "last"]]):
        for x, text in enumerate(row):
            table.cell(y, x).text = text
    merged = table.cell(2, 0).merge(table.cell(2, 1))
    merged.text = "over two"
    document.add_paragraph("after the table")
    document.save(file)


file = io.BytesIO()
{"xlsx": xlsx, "xls": xls, "ods": ods, "docx": docx}[sys.argv[1]](file)
sys.stdout.buffer.write(file.getvalue())
