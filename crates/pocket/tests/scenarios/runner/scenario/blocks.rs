//! The fenced blocks of a Markdown file.

use super::super::Failure;

/// One fenced block.
#[derive(Debug)]
pub(super) struct Fence {
    pub(super) line: usize,
    pub(super) heading: String,
    /// The words after the backticks.
    pub(super) info: Vec<String>,
    pub(super) text: String,
}

/// All fenced blocks, in order.
pub(super) fn fences(markdown: &str) -> Result<Vec<Fence>, (usize, Failure)> {
    let mut found: Vec<Fence> = Vec::new();
    let mut heading = String::new();
    let mut open: Option<Fence> = None;
    for (number, line) in markdown.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                open = Some(Fence {
                    line: number + 1,
                    heading: heading.clone(),
                    info: info.split_whitespace().map(str::to_owned).collect(),
                    text: String::new(),
                });
            }
            (None, None) if line.starts_with('#') => line.clone_into(&mut heading),
            (None, None) => {}
            (Some(_), Some("")) => found.extend(open.take()),
            (Some(fence), _) => {
                fence.text.push_str(line);
                fence.text.push('\n');
            }
        }
    }
    match open {
        Some(fence) => Err((fence.line, Failure::new("this block never ends"))),
        None => Ok(found),
    }
}
