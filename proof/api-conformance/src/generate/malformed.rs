//! Calls that are wrong before they concern an object.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    CallGenerator, KnownObject,
    value::{bad_text, pick},
};
use crate::call::{Body, Call, Captures};

const BODIES: [&str; 12] = [
    "{",
    "[]",
    "\"a\"",
    "null",
    "7",
    "{\"kind\":7}",
    "{\"a\":1}{\"b\":2}",
    "",
    "{\"metadata\":[]}",
    "{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}}",
    "a: [",
    "{\"apiVersion\":\"v1\"}",
];
const PATCHES: [&str; 10] = [
    "{", "[", "[]", "{}", "null", "", "7", "[{}]", "\"a\"", "a: b",
];
const PATCH_TYPES: [&str; 7] = [
    "application/json",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "",
    "text/plain",
];
const WATCHES: [&str; 7] = [
    "resourceVersion=x",
    "sendInitialEvents=true",
    "sendInitialEvents=true&resourceVersionMatch=Exact",
    "resourceVersionMatch=NotOlderThan",
    "labelSelector=a+b",
    "fieldSelector=spec.nope%3D1",
    "timeoutSeconds=x",
];

impl CallGenerator {
    pub(super) fn odd(&mut self, kind: usize, captures: &Captures) -> Call {
        let Some(known) = self.some_object(kind) else {
            return self.create(kind);
        };
        match self.rng.below(6) {
            0 => self.odd_body(kind, &known),
            1 => self.odd_patch(kind, known),
            2 => self.odd_watch(kind, &known),
            3 => self.put(kind, captures),
            _ => self.odd_place(kind, &known),
        }
    }

    /// A method or a path that does not exist.
    fn odd_place(&mut self, kind: usize, known: &KnownObject) -> Call {
        let place = self.place(kind, known, "");
        let collection = self.world.kinds[kind].collection(&known.namespace);
        let custom = self.world.kinds[kind].custom;
        let (verb, method, path) = match self.rng.below(9) {
            0 if !custom => ("odd-method", "POST", place),
            1 => ("odd-method", "PUT", collection),
            2 if !custom => ("odd-method", "PATCH", collection),
            3 => ("odd-subresource", "GET", format!("{place}/nope")),
            4 => ("odd-path", "GET", format!("{place}/status/more")),
            5 => {
                let name = bad_text(&mut self.rng);
                let name = utf8_percent_encode(&name, NON_ALPHANUMERIC);
                ("odd-name", "GET", format!("{collection}/{name}"))
            }
            6 => ("odd-version", "GET", place.replace("/v1/", "/v7/")),
            7 => ("delete-absent", "DELETE", format!("{collection}/absent")),
            _ => {
                let path = collection.replace("/namespaces/", "/namespaces/nope-");
                ("odd-namespace", "GET", path)
            }
        };
        let mut call = self.call(kind, verb, method, path);
        if matches!(method, "POST" | "PUT" | "PATCH") {
            call.content_type = "application/json".into();
            call.body = Body::Text("{}".into());
        }
        call
    }

    fn odd_body(&mut self, kind: usize, known: &KnownObject) -> Call {
        let collection = self.world.kinds[kind].collection(&known.namespace);
        let mut call = self.call(kind, "odd-body", "POST", collection);
        call.content_type = "application/json".into();
        call.body = Body::Text((*pick(&mut self.rng, &BODIES)).into());
        call
    }

    fn odd_patch(&mut self, kind: usize, known: KnownObject) -> Call {
        let place = self.place(kind, &known, "");
        let mut call = self.call(kind, "odd-patch", "PATCH", place);
        call.content_type = (*pick(&mut self.rng, &PATCH_TYPES)).into();
        call.body = Body::Text((*pick(&mut self.rng, &PATCHES)).into());
        call.about.object = Some((known.namespace, known.name));
        call
    }

    fn odd_watch(&mut self, kind: usize, known: &KnownObject) -> Call {
        let collection = self.world.kinds[kind].collection(&known.namespace);
        let query = *pick(&mut self.rng, &WATCHES);
        let path = format!("{collection}?watch=true&{query}&timeoutSeconds=1");
        self.call(kind, "odd-watch", "GET", path)
    }
}
