//! Lists of objects, as every `list` command prints them: `-o text|wide|name|yaml|json`, and `-w`.
//!
//! What a list contains is a value, [`Listing`]. How it is printed and followed is written here once.

mod changes;

use std::{io::Write, time::Duration};

use neap_kit::clock::Clock;
use serde_json::{Value, json};

use self::changes::Shown;
use super::{
    print,
    table::{Widths, row, widths},
};
use crate::{
    cli::{DataFormat, ListOutput, ListingOptions},
    exit::Failure,
    printable::printable_line,
};

/// How often a watched list is read.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A list of objects.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    /// The kind in JSON and YAML, such as `IdleList`.
    pub(crate) kind: &'static str,
    /// What precedes the name with `-o name`, as kubectl prints it: the kind and its group in lower case.
    pub(crate) resource: &'static str,
    pub(crate) columns: &'static [Column],
    pub(crate) items: Vec<Listed>,
    /// The text for a list without objects.
    pub(crate) empty: String,
}

/// One object of a list.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(crate) name: String,
    /// One cell for each column.
    pub(crate) cells: Vec<String>,
    /// The object for programs.
    pub(crate) data: Value,
}

/// A column of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    head: &'static str,
    /// Only with `-o wide`.
    wide: bool,
    /// The cell changes as time passes, which is no change of the object.
    passing: bool,
}

impl Column {
    /// A column that is always shown.
    pub(crate) const fn new(head: &'static str) -> Self {
        Self {
            head,
            wide: false,
            passing: false,
        }
    }

    /// A column with a time that passes, such as an age.
    pub(crate) const fn age(head: &'static str) -> Self {
        Self {
            passing: true,
            ..Self::new(head)
        }
    }

    /// Shows the column only with `-o wide`.
    pub(crate) const fn wide(self) -> Self {
        Self { wide: true, ..self }
    }
}

/// Prints what `read` returns; with `-w`, goes on and prints what changes.
pub(crate) async fn show(
    options: ListingOptions,
    clock: Clock,
    out: &mut dyn Write,
    mut read: impl AsyncFnMut() -> Result<Listing, Failure>,
) -> Result<(), Failure> {
    let first = read().await?;
    let mut widths = first.widths(options.output);
    print(out, options.output, &first.text(options.output, &widths)?)?;
    if !options.watch {
        return Ok(());
    }
    let mut shown = Shown::new(&first);
    // An empty list had no heading yet.
    let mut headed = !first.items.is_empty();
    loop {
        clock.sleep(POLL_INTERVAL).await;
        let next = read().await?;
        let (changed, gone) = shown.update(&next);
        if !headed && !changed.is_empty() {
            widths = next.widths(options.output);
            next.print_head(options.output, &widths, out)?;
            headed = true;
        }
        for item in changed {
            let line = next.line(item, options.output, &widths)?;
            print(out, options.output, &line)?;
        }
        if !matches!(options.output, ListOutput::Yaml | ListOutput::Json) {
            for name in gone {
                print::line(out, &format!("{}/{name} deleted", next.resource))?;
            }
        }
    }
}

/// Lists for programs are documents, whose format escapes what it must.
fn print(out: &mut dyn Write, output: ListOutput, text: &str) -> Result<(), Failure> {
    match output {
        ListOutput::Yaml | ListOutput::Json => print::raw(out, text),
        ListOutput::Text | ListOutput::Wide | ListOutput::Name => print::text(out, text),
    }
}

impl Listing {
    fn shown(&self, output: ListOutput) -> impl Iterator<Item = (usize, &Column)> {
        let all = self.columns.iter().enumerate();
        all.filter(move |(_, column)| !column.wide || output == ListOutput::Wide)
    }

    fn heads(&self, output: ListOutput) -> Vec<&str> {
        self.shown(output).map(|(_, column)| column.head).collect()
    }

    fn cells<'a>(&self, item: &'a Listed, output: ListOutput) -> Vec<&'a str> {
        let cell = |at: usize| item.cells.get(at).map_or("", String::as_str);
        self.shown(output).map(|(at, _)| cell(at)).collect()
    }

    fn widths(&self, output: ListOutput) -> Widths {
        let heads = self.heads(output);
        let rows = self.items.iter().map(|item| self.cells(item, output));
        widths(&heads, rows)
    }

    /// The whole list.
    fn text(&self, output: ListOutput, widths: &Widths) -> Result<String, Failure> {
        let items = || self.items.iter().map(|item| &item.data).collect::<Vec<_>>();
        Ok(match output {
            ListOutput::Json => {
                print::document(DataFormat::Json, self.kind, &json!({"items": items()}))?
            }
            ListOutput::Yaml => {
                print::document(DataFormat::Yaml, self.kind, &json!({"items": items()}))?
            }
            ListOutput::Name => {
                let lines = self.items.iter().map(|item| self.name(item));
                lines.collect::<Vec<_>>().join("\n")
            }
            ListOutput::Text | ListOutput::Wide if self.items.is_empty() => self.empty.clone(),
            ListOutput::Text | ListOutput::Wide => {
                let head = row(&self.heads(output), widths);
                let rows = self
                    .items
                    .iter()
                    .map(|item| row(&self.cells(item, output), widths));
                let lines: Vec<_> = std::iter::once(head).chain(rows).collect();
                lines.join("\n")
            }
        })
    }

    fn print_head(
        &self,
        output: ListOutput,
        widths: &Widths,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        match output {
            ListOutput::Text | ListOutput::Wide => {
                print::text(out, &row(&self.heads(output), widths))
            }
            ListOutput::Name | ListOutput::Yaml | ListOutput::Json => Ok(()),
        }
    }

    /// One object that has changed.
    fn line(&self, item: &Listed, output: ListOutput, widths: &Widths) -> Result<String, Failure> {
        Ok(match output {
            ListOutput::Json => format!("{:#}", item.data),
            ListOutput::Yaml => format!("---\n{}", print::yaml(&item.data)?),
            ListOutput::Name => self.name(item),
            ListOutput::Text | ListOutput::Wide => row(&self.cells(item, output), widths),
        })
    }

    fn name(&self, item: &Listed) -> String {
        format!("{}/{}", self.resource, printable_line(&item.name))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const COLUMNS: &[Column] = &[
        Column::new("NAME"),
        Column::new("STATE"),
        Column::age("AGE"),
        Column::new("WHY").wide(),
    ];

    fn listing(items: &[[&str; 4]]) -> Listing {
        let items = items.iter().map(|cells| Listed {
            name: cells[0].to_owned(),
            cells: cells.map(str::to_owned).to_vec(),
            data: json!({"name": cells[0], "state": cells[1]}),
        });
        Listing {
            kind: "BoatList",
            resource: "boat.sea.example",
            columns: COLUMNS,
            items: items.collect(),
            empty: "There is no boat.".to_owned(),
        }
    }

    fn text(output: ListOutput, items: &[[&str; 4]]) -> String {
        let listing = listing(items);
        listing.text(output, &listing.widths(output)).unwrap()
    }

    #[test]
    fn each_format_shows_the_same_objects() {
        let items = [
            ["tug", "asleep", "3s", "idle"],
            ["ferry", "awake", "1s", ""],
        ];
        assert_eq!(
            text(ListOutput::Text, &items),
            "NAME   STATE   AGE\ntug    asleep  3s\nferry  awake   1s"
        );
        assert_eq!(
            text(ListOutput::Wide, &items),
            "NAME   STATE   AGE  WHY\ntug    asleep  3s   idle\nferry  awake   1s"
        );
        assert_eq!(
            text(ListOutput::Name, &items),
            "boat.sea.example/tug\nboat.sea.example/ferry"
        );
        let json: Value = serde_json::from_str(&text(ListOutput::Json, &items)).unwrap();
        assert_eq!(
            (&json["kind"], &json["items"][1]["name"]),
            (&json!("BoatList"), &json!("ferry"))
        );
        let yaml = text(ListOutput::Yaml, &items);
        assert!(
            yaml.contains("kind: BoatList") && yaml.contains("name: ferry"),
            "{yaml}"
        );
        assert_eq!(text(ListOutput::Text, &[]), "There is no boat.");
        assert_eq!(text(ListOutput::Name, &[]), "");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watched_list_prints_what_changes_and_nothing_when_time_passes() {
        let reads = RefCell::new(
            vec![
                vec![["tug", "asleep", "3s", "a"]],
                vec![["tug", "asleep", "4s", "a"]],
                vec![["tug", "waking", "0s", "a"], ["ferry", "awake", "1s", "b"]],
                vec![["ferry", "awake", "2s", "b"]],
            ]
            .into_iter(),
        );
        let options = ListingOptions {
            output: ListOutput::Text,
            watch: true,
        };
        let mut out = Vec::new();
        let read = async || match reads.borrow_mut().next() {
            Some(items) => Ok(listing(&items)),
            None => Err(Failure::new(
                "NT-CLI-0003",
                crate::exit::Exit::Unreachable,
                "end",
                "",
            )),
        };
        let ended = show(options, Clock::system(), &mut out, read).await;
        assert!(ended.is_err(), "it goes on until it cannot read");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "NAME  STATE   AGE\ntug   asleep  3s\ntug   waking  0s\nferry  awake   1s\nboat.sea.example/tug deleted\n"
        );
    }
}
