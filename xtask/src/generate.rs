//! The generated files.

/// Writes the generated files, or with `check` only says which are not up to date.
#[expect(clippy::unnecessary_wraps, reason = "there is nothing to generate yet")]
pub(crate) fn run(_check: bool) -> anyhow::Result<()> {
    Ok(())
}
