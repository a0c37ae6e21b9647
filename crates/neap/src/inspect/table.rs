//! A table of text.

/// Columns of minimal width, two spaces apart.
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<_> = heads.iter().map(|head| head.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[&str]| {
        let cells = cells.iter().zip(&widths);
        let line: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        line.join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(heads)];
    for row in rows {
        let cells: Vec<_> = row.iter().map(String::as_str).collect();
        lines.push(line(&cells));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

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
