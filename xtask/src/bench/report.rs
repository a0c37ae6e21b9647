//! The rows, for people and for programs.

use clap::ValueEnum;
use serde_json::{Value, json};

use super::{Area, Asked, Row};

const HEADER: [&str; 6] = ["FIGURE", "OURS", "PEER", "RATIO", "ASKED", "HOLDS"];

/// One record a line, columns as wide as they need to be.
pub(super) fn table(rows: &[Row]) -> String {
    let mut lines = vec![HEADER.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let width = |column: usize| {
        lines
            .iter()
            .map(|cells| cells[column].chars().count())
            .max()
    };
    let widths: [usize; 6] = std::array::from_fn(|column| width(column).unwrap_or_default());
    let line = |cells: &[String; 6]| {
        let cells = cells.iter().zip(widths);
        let cells: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    let lines: Vec<_> = lines.iter().map(line).collect();
    lines.join("\n")
}

fn cells(row: &Row) -> [String; 6] {
    let unit = row.unit;
    let none = || "-".to_owned();
    [
        row.figure.to_owned(),
        format!("{:.1} {unit}", row.ours),
        row.peer
            .map_or_else(none, |peer| format!("{peer:.1} {unit}")),
        row.ratio().map_or_else(none, |ratio| format!("{ratio:.2}")),
        asked(row),
        match row.asked {
            Asked::Nothing => none(),
            _ if row.holds() => "✓ yes".to_owned(),
            _ => "✗ no".to_owned(),
        },
    ]
}

fn asked(row: &Row) -> String {
    match row.asked {
        Asked::Nothing => "-".to_owned(),
        Asked::AtMost(limit) => format!("≤ {limit} {}", row.unit),
        Asked::ShareOfPeer(share) => format!("ratio ≤ {share}"),
    }
}

/// A versioned envelope.
pub(super) fn json(area: Area, rows: &[Row]) -> String {
    let area = area
        .to_possible_value()
        .map(|value| value.get_name().to_owned());
    let items: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "figure": row.figure,
                "unit": row.unit,
                "ours": row.ours,
                "peer": row.peer,
                "ratio": row.ratio(),
                "asked": asked(row),
                "holds": row.holds(),
            })
        })
        .collect();
    let report = json!({
        "apiVersion": "neaptide.dev/v1alpha1",
        "kind": "BenchReport",
        "area": area,
        "items": items,
    });
    format!("{report:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: f64, peer: Option<f64>, asked: Asked) -> Row {
        Row {
            figure: "start",
            unit: "ms",
            ours,
            peer,
            asked,
        }
    }

    #[test]
    fn rows_hold_by_limit_or_by_ratio() {
        for (row, holds) in [
            (row(100.0, None, Asked::AtMost(100.0)), true),
            (row(100.1, None, Asked::AtMost(100.0)), false),
            (row(5.0, Some(10.0), Asked::ShareOfPeer(0.5)), true),
            (row(6.0, Some(10.0), Asked::ShareOfPeer(0.5)), false),
            (row(1.0, None, Asked::ShareOfPeer(0.5)), false),
            (row(1.0, None, Asked::Nothing), true),
        ] {
            assert_eq!(row.holds(), holds, "{row:?}");
        }
    }

    #[test]
    fn table_lines_up() {
        let rows = [row(5.0, Some(10.0), Asked::ShareOfPeer(0.5))];
        assert_eq!(
            table(&rows),
            "FIGURE  OURS    PEER     RATIO  ASKED        HOLDS\n\
             start   5.0 ms  10.0 ms  0.50   ratio ≤ 0.5  ✓ yes"
        );
    }
}
