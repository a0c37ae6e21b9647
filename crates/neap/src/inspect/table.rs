//! A table of text.

use crate::printable::printable_line;

/// The width of each column.
pub(crate) type Widths = Vec<usize>;

/// Columns of minimal width, two spaces apart.
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| row.iter().map(String::as_str).collect())
        .collect();
    let widths = widths(heads, rows.iter().cloned());
    let mut lines = vec![row(heads, &widths)];
    lines.extend(rows.iter().map(|cells| row(cells, &widths)));
    lines.join("\n")
}

/// The widths that headings and cells need.
pub(crate) fn widths<'a>(heads: &[&str], rows: impl Iterator<Item = Vec<&'a str>>) -> Widths {
    let mut widths: Vec<_> = heads.iter().map(|head| head.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(printable_line(cell).chars().count());
        }
    }
    widths
}

/// A line of the table.
pub(crate) fn row(cells: &[&str], widths: &Widths) -> String {
    let cells = cells.iter().zip(widths);
    let line: Vec<_> = cells
        .map(|(cell, width)| format!("{:<width$}", printable_line(cell)))
        .collect();
    line.join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_stays_on_its_line_and_cannot_command_the_terminal() {
        let rows = [vec!["a\u{1b}[2J\nb".to_owned(), "c".to_owned()]];
        assert_eq!(
            table(&["NAME", "STATE"], &rows),
            "NAME           STATE\na\\u{1b}[2J\\nb  c"
        );
    }

    #[test]
    fn columns_are_aligned_with_their_headings() {
        let rows = [
            vec!["shop".to_owned(), "asleep".to_owned()],
            vec!["a".to_owned(), "b".to_owned()],
        ];
        assert_eq!(
            table(&["NAME", "STATE"], &rows),
            "NAME  STATE\nshop  asleep\na     b"
        );
    }
}
