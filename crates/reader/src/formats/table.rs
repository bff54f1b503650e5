//! Reads the tables in `tests/data`. Each line has markup of a format, and the text that it stands for.

/// Returns the cells of each line of a table. Lines that begin with `# ` are comments. The last cell is a text, where ¶
/// is a line break and ¦ is the end of a cell.
pub(super) fn parse_rows<const CELLS: usize>(table: &str) -> Vec<[String; CELLS]> {
    let lines = table.lines().filter(|line| !line.starts_with("# "));
    lines
        .map(|line| {
            let mut cells: Vec<String> = line.split('\t').map(unescape).collect();
            if let Some(text) = cells.last_mut() {
                *text = text.replace('¶', "\n").replace('¦', "\t");
            }
            let row: Result<[String; CELLS], _> = cells.try_into();
            row.unwrap_or_else(|_| panic!("{line:?}"))
        })
        .collect()
}

fn unescape(text: &str) -> String {
    let mut parts = text.split("\\u{");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.split_once('}');
        let number = code.and_then(|(code, _)| u32::from_str_radix(code, 16).ok());
        match (code, number.and_then(char::from_u32)) {
            (Some((_, rest)), Some(character)) => {
                plain.push(character);
                plain.push_str(rest);
            }
            _ => panic!("no escape: {text:?}"),
        }
    }
    plain
}
