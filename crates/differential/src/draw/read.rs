//! Calls that read, and calls that no server understands.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    Drawer,
    value::{bad_text, chance, pick},
    write::verb,
};
use crate::call::{Body, Call, Captures, capture};

const FORMS: [&str; 3] = [
    "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
];

impl Drawer {
    fn accept(&mut self, call: &mut Call, list: bool) {
        let form = match self.dice.below(12) {
            0 | 1 => FORMS[0],
            2 if list => FORMS[2],
            2 => FORMS[1],
            3 if chance(&mut self.dice, 10) => "text/html",
            4 if chance(&mut self.dice, 10) => "application/json;as=Chair;g=meta.k8s.io;v=v1",
            5 => "*/*",
            _ => return,
        };
        call.accept = form.into();
        let short = if form.contains("Table") {
            "table"
        } else if form.contains("Partial") {
            "partial"
        } else {
            return;
        };
        call.about.verb = format!("{}-{short}", call.about.verb);
    }

    pub(super) fn get(&mut self, kind: usize) -> Call {
        let Some(mut known) = self.some_object(kind) else {
            return self.create(kind);
        };
        let subresource = self.subresource(kind);
        if chance(&mut self.dice, 12) {
            known.name = "absent".into();
        }
        let query = *pick(
            &mut self.dice,
            &[
                "",
                "",
                "",
                "",
                "resourceVersion=0",
                "resourceVersion=x",
                "pretty=true",
                "resourceVersionMatch=Exact",
                "unknown=1",
            ],
        );
        let path = format!("{}?{query}", self.place(kind, &known, subresource));
        let mut call = self.call(kind, &verb("get", subresource), "GET", path);
        if subresource != "scale" {
            self.accept(&mut call, false);
        }
        call.about.object = Some((known.namespace, known.name));
        call
    }

    pub(super) fn list(&mut self, kind: usize, captures: &Captures) -> Call {
        if let Some((number, path, kind)) = self.pages.take() {
            if chance(&mut self.dice, 2) {
                let token = capture(number, "/metadata/continue");
                let extra = *pick(
                    &mut self.dice,
                    &[
                        "",
                        "",
                        "",
                        "&resourceVersion=1",
                        "&resourceVersionMatch=Exact",
                    ],
                );
                let mut call = self.call(
                    kind,
                    "list-continue",
                    "GET",
                    format!("{path}&continue={token}{extra}"),
                );
                self.accept(&mut call, true);
                return call;
            }
            self.pages = Some((number, path, kind));
        }
        let namespace = self.namespace(kind);
        let mut query = vec![format!(
            "limit={}",
            *pick(&mut self.dice, &["0", "1", "2", "3", "500", "x", "-1"])
        )];
        // Namespaces end in their own time, so their pages are not the same everywhere.
        if chance(&mut self.dice, 2) || self.world.kinds[kind].name == "Namespace" {
            query.clear();
        }
        if chance(&mut self.dice, 2) {
            query.push(self.selector(kind));
        }
        if chance(&mut self.dice, 4) {
            query.push(self.revision(kind, captures));
        }
        if chance(&mut self.dice, 40) {
            query.push(format!(
                "continue={}",
                *pick(&mut self.dice, &["x", "e30", ""])
            ));
        }
        // Other namespaces hold what others make.
        let cluster = !self.world.kinds[kind].namespaced;
        if cluster {
            query.retain(|part| !part.starts_with("labelSelector"));
            query.push(format!("labelSelector=run%3Dr{}", self.seed));
        }
        let path = format!(
            "{}?{}",
            self.world.kinds[kind].collection(&namespace),
            query.join("&")
        );
        let mut call = self.call(kind, "list", "GET", path);
        self.accept(&mut call, true);
        call
    }

    fn selector(&mut self, kind: usize) -> String {
        let name = self
            .some_object(kind)
            .map_or_else(|| "none".into(), |known| known.name);
        let by_name = format!("fieldSelector=metadata.name%3D{name}");
        let not_name = format!("fieldSelector=metadata.name!%3D{name}");
        let fixed = [
            "labelSelector=app%3Dweb",
            "labelSelector=app!%3Dweb",
            "labelSelector=app+in+(web,db)",
            "labelSelector=!app",
            "labelSelector=app",
            "labelSelector=app+notin+(web),tier",
            "labelSelector=a+b",
            "labelSelector=app%3D%3D%3Dx",
            "labelSelector=,",
            "labelSelector=app+gt+1",
            "labelSelector=app+in+()",
            "labelSelector=-x%3D1",
            "fieldSelector=spec.nope%3D1",
            "fieldSelector=metadata.namespace!%3Dx",
            "fieldSelector=status.phase%3DActive",
            "fieldSelector=type%3DOpaque",
            "fieldSelector=spec.type%3DClusterIP",
            "fieldSelector=spec.restartPolicy%3DAlways",
            "fieldSelector=x",
            "fieldSelector=spec.color%3Dred",
            "fieldSelector=metadata.name",
            "fieldSelector=spec.nodeName%3D",
            "labelSelector=app%3Dbad+value",
            "labelSelector=app%3Dweb,app%3Ddb",
        ];
        match self.dice.below(5) {
            0 => by_name,
            1 => not_name,
            _ => (*pick(&mut self.dice, &fixed)).to_owned(),
        }
    }

    fn revision(&mut self, kind: usize, captures: &Captures) -> String {
        let list = self
            .lists
            .iter()
            .rev()
            .find(|(of, number)| *of == kind && captures.contains_key(number));
        if let Some((_, number)) = list.copied() {
            if chance(&mut self.dice, 2) {
                let revision = capture(number, "/metadata/resourceVersion");
                let how = *pick(
                    &mut self.dice,
                    &[
                        "",
                        "&resourceVersionMatch=Exact",
                        "&resourceVersionMatch=NotOlderThan",
                        "&resourceVersionMatch=Exact",
                    ],
                );
                return format!("resourceVersion={revision}{how}");
            }
        }
        (*pick(
            &mut self.dice,
            &[
                "resourceVersion=0",
                "resourceVersion=x",
                "resourceVersion=-1",
                "resourceVersionMatch=Exact",
                "resourceVersion=0&resourceVersionMatch=Exact",
                "resourceVersion=0&resourceVersionMatch=NotOlderThan",
                "resourceVersion=0&resourceVersionMatch=Often",
                "sendInitialEvents=true",
                "allowWatchBookmarks=true",
            ],
        ))
        .to_owned()
    }

    /// A call that is wrong before it is about an object.
    pub(super) fn odd(&mut self, kind: usize, captures: &Captures) -> Call {
        let Some(known) = self.some_object(kind) else {
            return self.create(kind);
        };
        let place = self.place(kind, &known, "");
        let collection = self.world.kinds[kind].collection(&known.namespace);
        let custom = self.world.kinds[kind].custom;
        let mut call = match self.dice.below(14) {
            0 if !custom => self.call(kind, "odd-method", "POST", place),
            1 => self.call(kind, "odd-method", "PUT", collection),
            2 if !custom => self.call(kind, "odd-method", "PATCH", collection),
            3 => self.call(kind, "odd-subresource", "GET", format!("{place}/nope")),
            4 => self.call(kind, "odd-path", "GET", format!("{place}/status/more")),
            5 => {
                let name = bad_text(&mut self.dice);
                let name = utf8_percent_encode(&name, NON_ALPHANUMERIC);
                self.call(kind, "odd-name", "GET", format!("{collection}/{name}"))
            }
            6 => self.call(kind, "odd-version", "GET", place.replace("/v1/", "/v7/")),
            7 => self.call(
                kind,
                "odd-namespace",
                "GET",
                collection.replace("/namespaces/", "/namespaces/nope-"),
            ),
            8 => {
                let mut call = self.call(kind, "odd-body", "POST", collection);
                call.content_type = "application/json".into();
                call.body = Body::Text(
                    (*pick(
                        &mut self.dice,
                        &[
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
                        ],
                    ))
                    .into(),
                );
                return call;
            }
            9 => {
                let mut call = self.call(kind, "odd-patch", "PATCH", place);
                call.content_type = (*pick(
                    &mut self.dice,
                    &[
                        "application/json",
                        "application/json-patch+json",
                        "application/merge-patch+json",
                        "application/strategic-merge-patch+json",
                        "application/apply-patch+yaml",
                        "",
                        "text/plain",
                    ],
                ))
                .into();
                call.body = Body::Text(
                    (*pick(
                        &mut self.dice,
                        &[
                            "{", "[", "[]", "{}", "null", "", "7", "[{}]", "\"a\"", "a: b",
                        ],
                    ))
                    .into(),
                );
                call.about.object = Some((known.namespace, known.name));
                return call;
            }
            10 => return self.delete_absent(kind),
            12 | 13 => {
                let query = *pick(
                    &mut self.dice,
                    &[
                        "resourceVersion=x",
                        "sendInitialEvents=true",
                        "sendInitialEvents=true&resourceVersionMatch=Exact",
                        "resourceVersionMatch=NotOlderThan",
                        "labelSelector=a+b",
                        "fieldSelector=spec.nope%3D1",
                        "timeoutSeconds=x",
                    ],
                );
                return self.call(
                    kind,
                    "odd-watch",
                    "GET",
                    format!("{collection}?watch=true&{query}&timeoutSeconds=1"),
                );
            }
            _ => return self.put(kind, captures),
        };
        call.content_type = "application/json".into();
        if call.method != "GET" {
            call.body = Body::Text("{}".into());
        }
        call
    }

    fn delete_absent(&mut self, kind: usize) -> Call {
        let namespace = self.namespace(kind);
        let path = format!("{}/absent", self.world.kinds[kind].collection(&namespace));
        self.call(kind, "delete-absent", "DELETE", path)
    }
}
