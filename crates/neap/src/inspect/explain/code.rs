//! Explains error codes.

use std::io::Write;

use neap_kit::why::CatalogueEntry;
use serde_json::json;

use crate::{
    areas,
    cli::Output,
    exit::{Exit, Failure},
    inspect::print,
};

/// Whether the text is meant as an error code.
pub(super) fn is_code_like(text: &str) -> bool {
    text.trim().to_ascii_uppercase().starts_with("NT-")
        || !areas::catalogue().nearest(text).is_empty()
}

/// Prints the entry of the code.
pub(super) fn explain(text: &str, output: Output, out: &mut dyn Write) -> Result<(), Failure> {
    let entry = areas::catalogue().find(text).ok_or_else(|| unknown(text))?;
    match output.data() {
        None => print::text(out, &entry.to_string()),
        Some(format) => print::data(out, format, "Code", entry),
    }
}

/// Lists all codes, one per line.
pub(super) fn list(output: Output, out: &mut dyn Write) -> Result<(), Failure> {
    let catalogue = areas::catalogue();
    let codes: Vec<_> = catalogue.all().collect();
    match output.data() {
        None => {
            let lines = codes
                .iter()
                .map(|entry| format!("{:<12} {}", entry.code.0, entry.title));
            let lines: Vec<_> = lines.collect();
            let more = "Explain a code: neap explain CODE";
            print::text(out, &format!("{}\n\n{more}", lines.join("\n")))
        }
        Some(format) => print::data(out, format, "Codes", &json!({"codes": codes})),
    }
}

fn unknown(text: &str) -> Failure {
    let what = format!("the error code {text} does not exist");
    let near: Vec<_> = areas::catalogue()
        .nearest(text)
        .into_iter()
        .map(code_and_title)
        .collect();
    let why = if near.is_empty() {
        "it is not in the catalogue of this version of neap".to_owned()
    } else {
        format!("similar codes are {}", near.join(", "))
    };
    Failure::new("NT-CLI-0009", Exit::Usage, &what, &why).remedy("list all codes with neap explain")
}

fn code_and_title(entry: &CatalogueEntry) -> String {
    format!("{} ({})", entry.code, entry.title)
}
