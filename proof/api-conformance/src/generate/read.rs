//! Calls that read.

use super::{
    CallGenerator,
    value::{chance, pick},
    write::verb,
};
use crate::call::{Call, Captures, capture};

const FORMS: [&str; 3] = [
    "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
];

impl CallGenerator {
    fn accept(&mut self, call: &mut Call, list: bool) {
        let form = match self.rng.below(12) {
            0 | 1 => FORMS[0],
            2 if list => FORMS[2],
            2 => FORMS[1],
            3 if chance(&mut self.rng, 10) => "text/html",
            4 if chance(&mut self.rng, 10) => "application/json;as=Chair;g=meta.k8s.io;v=v1",
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
        if chance(&mut self.rng, 12) {
            known.name = "absent".into();
        }
        let query = *pick(
            &mut self.rng,
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
            if chance(&mut self.rng, 2) {
                let token = capture(number, "/metadata/continue");
                let extra = *pick(
                    &mut self.rng,
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
            *pick(&mut self.rng, &["0", "1", "2", "3", "500", "x", "-1"])
        )];
        // Namespaces terminate at different times on the two servers, so their pages differ.
        if chance(&mut self.rng, 2) || self.world.kinds[kind].name == "Namespace" {
            query.clear();
        }
        if chance(&mut self.rng, 2) {
            query.push(self.selector(kind));
        }
        if chance(&mut self.rng, 4) {
            query.push(self.revision(kind, captures));
        }
        if chance(&mut self.rng, 40) {
            query.push(format!(
                "continue={}",
                *pick(&mut self.rng, &["x", "e30", ""])
            ));
        }
        // Other namespaces contain objects of other clients.
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
        match self.rng.below(5) {
            0 => by_name,
            1 => not_name,
            _ => (*pick(&mut self.rng, &fixed)).to_owned(),
        }
    }

    fn revision(&mut self, kind: usize, captures: &Captures) -> String {
        let list = self
            .lists
            .iter()
            .rev()
            .find(|(of, number)| *of == kind && captures.contains_key(number));
        if let Some((_, number)) = list.copied()
            && chance(&mut self.rng, 2)
        {
            let revision = capture(number, "/metadata/resourceVersion");
            let how = *pick(
                &mut self.rng,
                &[
                    "",
                    "&resourceVersionMatch=Exact",
                    "&resourceVersionMatch=NotOlderThan",
                    "&resourceVersionMatch=Exact",
                ],
            );
            return format!("resourceVersion={revision}{how}");
        }
        (*pick(
            &mut self.rng,
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
}
