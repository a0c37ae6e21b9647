//! What a code means.

use std::io::Write;

use neap_kit::why::{self, Entry};
use serde_json::json;

use crate::{
    ask::print,
    cli::Output,
    exit::{Exit, Failure},
};

/// Whether somebody who types this means a code.
pub(super) fn is_one(text: &str) -> bool {
    text.trim().to_ascii_uppercase().starts_with("NT-") || !why::nearest(text).is_empty()
}

/// Says what the code means.
pub(super) fn explain(text: &str, output: Output, out: &mut dyn Write) -> Result<(), Failure> {
    let entry = why::find(text).ok_or_else(|| unknown(text))?;
    match output {
        Output::Text => print::text(out, &entry.to_string()),
        Output::Json => print::json(out, "Code", entry),
    }
}

/// Every code, in a line each.
pub(super) fn list(output: Output, out: &mut dyn Write) -> Result<(), Failure> {
    let codes: Vec<_> = why::all().collect();
    match output {
        Output::Text => {
            let lines = codes
                .iter()
                .map(|entry| format!("{:<12} {}", entry.code.0, entry.title));
            let lines: Vec<_> = lines.collect();
            let more = "What one means, and what to do: neap explain CODE";
            print::text(out, &format!("{}\n\n{more}", lines.join("\n")))
        }
        Output::Json => print::json(out, "Codes", &json!({"codes": codes})),
    }
}

fn unknown(text: &str) -> Failure {
    let what = format!("there is no code {text}");
    let near: Vec<_> = why::nearest(text).into_iter().map(meant).collect();
    let why = if near.is_empty() {
        "it is not in the catalogue of this version".to_owned()
    } else {
        format!("near to it are {}", near.join(", "))
    };
    Failure::new("NT-CLI-0009", Exit::Usage, &what, &why)
        .remedy("take one that is there: neap explain lists them")
}

fn meant(entry: &Entry) -> String {
    format!("{} ({})", entry.code, entry.title)
}
