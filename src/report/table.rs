//! Plain tables: names of columns in capitals, no lines drawn, numbers to the right, nothing at the end of a line.

use comfy_table::{CellAlignment, Table, presets::NOTHING};

/// Where the text of a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table in the making.
#[derive(Debug)]
pub(super) struct Rows {
    table: Table,
    rows: usize,
}

impl Rows {
    /// A table with these columns.
    pub(super) fn new(columns: &[(&str, Align)]) -> Self {
        let mut table = Table::new();
        table.load_style(NOTHING);
        table.set_header(columns.iter().map(|&(name, _)| name));
        for (column, &(_, align)) in table.column_iter_mut().zip(columns) {
            column.set_padding((0, 2));
            column.set_cell_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        Self { table, rows: 0 }
    }

    /// Appends a row, a text a column.
    pub(super) fn push<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.table.add_row(cells.into_iter().map(|cell| printable(&cell.into())));
        self.rows += 1;
    }

    /// True without a row.
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The lines, each with its end.
    pub(super) fn text(&self) -> String {
        self.table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// Lines of a word and what it says, the second column aligned.
pub(super) fn facts<K: AsRef<str>, V: AsRef<str>>(facts: &[(K, V)]) -> String {
    let width = facts.iter().map(|(key, _)| key.as_ref().chars().count()).max().unwrap_or(0);
    let line = |(key, value): &(K, V)| {
        let (key, value) = (key.as_ref(), printable(value.as_ref()));
        format!("{key}{}  {value}", " ".repeat(width - key.chars().count())).trim_end().to_owned() + "\n"
    };
    facts.iter().map(line).collect()
}

/// The words of a text on lines of at most `width` characters; a word that is longer has a line of its own.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace().map(printable) {
        let line = lines.last_mut().map(|line| (line.chars().count(), line));
        match line {
            Some((0, line)) => line.push_str(&word),
            Some((length, line)) if length + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// Text from outside, safe for a terminal: one line, and no control characters.
pub(super) fn printable(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_with_text() {
        let mut rows = Rows::new(&[("NAME", Align::Left), ("N", Align::Right), ("WHY", Align::Left)]);
        assert!(rows.is_empty());
        rows.push(["a", "10", ""]);
        rows.push(["lo\u{1b}ng", "1", "x"]);
        assert_eq!(rows.text(), "NAME         N  WHY\na           10\nlo\\u{1b}ng   1  x\n");
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("a bc def  longer\n of", 5), ["a bc", "def", "longer", "of"]);
        assert_eq!(facts(&[("a", "1"), ("long", "2")]), "a     1\nlong  2\n");
    }
}
