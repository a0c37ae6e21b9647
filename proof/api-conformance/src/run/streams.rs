//! Watches during a run: opened, left alone while other calls go on, ended and compared.

use anyhow::Result;
use serde_json::Value;

use super::{Run, plain};
use crate::{
    call::{About, Body, Call},
    compare::Difference,
    stream::{self, Stream},
};

impl Run {
    pub(super) async fn open(
        &mut self,
        kind: usize,
        namespace: String,
        path: String,
        until: usize,
    ) -> Result<()> {
        let (reference, pocket) =
            tokio::join!(self.reference.watch(&path), self.pocket.watch(&path));
        let (reference, pocket) = (reference?, pocket?);
        let call = self.watch_call(kind, &path);
        self.report.count(&call, reference.status, &Value::Null);
        if reference.status != pocket.status {
            let rule = format!("{} not {}", reference.status, pocket.status);
            let none = Value::Null;
            let difference = Difference {
                field: "code".into(),
                rule,
                reference: none.clone(),
                pocket: none,
            };
            self.report.record(&call, (self.seed, until), difference);
        }
        if reference.status == 200 && pocket.status == 200 {
            let kind = self.world.kinds[kind].clone();
            self.streams.push(Stream {
                kind,
                namespace,
                path,
                until,
                reference,
                pocket,
            });
        }
        Ok(())
    }

    fn watch_call(&self, kind: usize, path: &str) -> Call {
        let mut call = plain("GET", path, Body::None);
        call.about = About {
            kind: self.world.kinds[kind].name.clone(),
            verb: "watch".into(),
            object: None,
        };
        call
    }

    /// Ends and compares the streams that are due.
    pub(super) async fn close_streams(&mut self, step: usize) -> Result<()> {
        let ends = |stream: &mut Stream| stream.until <= step;
        let ending: Vec<_> = self.streams.extract_if(.., ends).collect();
        for stream in ending {
            self.close_stream(stream, step).await?;
        }
        Ok(())
    }

    async fn close_stream(&mut self, mut stream: Stream, step: usize) -> Result<()> {
        let name = format!("zz-{}-{}", self.seed, self.number);
        let collection = stream.kind.collection(&stream.namespace);
        self.setup(&collection, stream::sentinel(&stream.kind, &name))
            .await?;
        let (theirs, ours) = tokio::join!(
            stream::read(&mut stream.reference, &name),
            stream::read(&mut stream.pocket, &name)
        );
        let kind = self
            .world
            .kinds
            .iter()
            .position(|kind| kind.root == stream.kind.root)
            .unwrap_or(0);
        let call = self.watch_call(kind, &stream.path);
        let (theirs, ours) = match (theirs, ours) {
            (Ok(theirs), Ok(ours)) => (theirs, ours),
            (theirs, ours) => {
                let told = |read: Result<Vec<Value>>| {
                    read.map_or_else(|e| e.to_string(), |_| "ended".into())
                };
                let (reference, pocket) = (told(theirs), told(ours));
                let rule = format!("{reference} not {pocket}");
                let difference = Difference {
                    field: "end".into(),
                    rule,
                    reference: reference.into(),
                    pocket: pocket.into(),
                };
                self.report.record(&call, (self.seed, step), difference);
                return Ok(());
            }
        };
        let number = self.number;
        let mut masked = Vec::new();
        for (side, events) in [(&mut self.reference, theirs), (&mut self.pocket, ours)] {
            side.labels.begin(number);
            let events = stream::compared(events, &self.retired);
            masked.push(
                events
                    .iter()
                    .map(|event| side.labels.mask(event))
                    .collect::<Vec<_>>(),
            );
        }
        self.report.watches.0 += 1;
        self.report.watches.1 += masked[0].len();
        let found = stream::differences(&masked[0], &masked[1]);
        for difference in self.not_allowed(&call, found) {
            self.report.record(&call, (self.seed, step), difference);
        }
        self.both(&plain(
            "DELETE",
            &format!("{collection}/{name}?gracePeriodSeconds=0"),
            Body::None,
        ))
        .await?;
        Ok(())
    }
}
