//! The rows, for people and for programs.

use clap::ValueEnum;
use serde_json::{Value, json};

use super::{
    Area,
    row::{Better, Requirement, Row},
};

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
        format!("{} {unit}", number(row.ours)),
        row.peer
            .map_or_else(none, |peer| format!("{} {unit}", number(peer))),
        row.ratio()
            .map_or_else(none, |ratio| format!("{}×", number(ratio))),
        asked(row),
        match (row.holds(), row.asked) {
            (Some(true), _) => "✓ yes".to_owned(),
            (Some(false), _) => "✗ no".to_owned(),
            (None, Requirement::Nothing) => none(),
            (None, _) => "not judged: no peer".to_owned(),
        },
    ]
}

/// Three digits are what a measurement is good for.
fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn asked(row: &Row) -> String {
    match (row.asked, row.better) {
        (Requirement::Nothing, _) => "-".to_owned(),
        (Requirement::Limit(limit), Better::Less) => format!("≤ {limit} {}", row.unit),
        (Requirement::Limit(limit), Better::More) => format!("≥ {limit} {}", row.unit),
        (Requirement::Times(times), _) => format!("≥ {}×", (times * 100.0).round() / 100.0),
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

    fn row(peer: Option<f64>) -> Row {
        Row {
            figure: "start",
            unit: "ms",
            better: Better::Less,
            ours: 5.0,
            peer,
            asked: Requirement::Times(2.0),
        }
    }

    #[test]
    fn table_lines_up() {
        assert_eq!(
            table(&[row(Some(10.0))]),
            "FIGURE  OURS     PEER     RATIO  ASKED  HOLDS\n\
             start   5.00 ms  10.0 ms  2.00×  ≥ 2×   ✓ yes"
        );
    }

    #[test]
    fn a_ratio_without_a_peer_is_not_judged() {
        assert!(table(&[row(None)]).ends_with("not judged: no peer"));
        let report: Value = serde_json::from_str(&json(Area::Pocket, &[row(None)])).unwrap();
        assert_eq!(report["items"][0]["holds"], Value::Null);
    }
}
