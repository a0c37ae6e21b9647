//! The calls of a seed, written down and sent again.

use anyhow::Result;
use serde_json::Value;

use super::Run;
use crate::call::Call;

impl Run {
    /// The calls of the last seed, one a line.
    pub fn recorded(&self) -> String {
        let lines = self
            .calls
            .iter()
            .filter_map(|call| serde_json::to_string(call).ok());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Sends recorded calls again, comparing those that are about something.
    pub async fn replay(&mut self, recorded: &str) -> Result<()> {
        for line in recorded.lines() {
            let (number, call): (usize, Call) = serde_json::from_str(line)?;
            self.number = number - 1;
            let outcome = self.ask(&call).await?;
            self.reference
                .captures
                .insert(number, outcome.reference.body);
            self.pocket.captures.insert(number, outcome.pocket.body);
            if call.about.kind.is_empty() {
                continue;
            }
            self.report
                .count(&call, outcome.reference.code, &Value::Null);
            for difference in outcome.differences {
                self.report.note(&call, (0, number), difference);
            }
        }
        Ok(())
    }
}
