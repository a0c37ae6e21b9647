//! Records the calls of a seed, and sends them again.

use anyhow::Result;
use serde_json::Value;

use super::Run;
use crate::call::Call;

impl Run {
    /// The calls of the last seed, one per line.
    pub fn recorded(&self) -> String {
        let lines = self
            .calls
            .iter()
            .filter_map(|call| serde_json::to_string(call).ok());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Sends recorded calls again, and compares those that are about an object.
    pub async fn replay(&mut self, recorded: &str) -> Result<()> {
        for line in recorded.lines() {
            let (number, call): (usize, Call) = serde_json::from_str(line)?;
            self.number = number - 1;
            let outcome = self.send_and_compare(&call).await?;
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
                self.report.record(&call, (0, number), difference);
            }
        }
        Ok(())
    }
}
