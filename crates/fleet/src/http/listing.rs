//! Lists of administrators: all documents of a collection, written to the answer page by page.
//!
//! A region has thousands of clusters and a week of operations. The answer has all of them, and the frontend has one
//! page of them at a time. The first page is read before the answer begins, so that a database which cannot be used
//! has the usual answer; one that fails later ends the connection, and the client knows that its list is incomplete.

use std::{collections::VecDeque, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::{IntoResponse, Response},
};
use futures::{Stream, StreamExt, stream};
use http::{HeaderValue, header};
use neap_kit::why::chain;
use neap_store::{Document, DocumentKey, Error, ListRequest, Scope};
use serde_json::Value;

use super::{
    Failure, Frontend,
    answer::{pretty, store_error},
};
use crate::cloud_error::CloudError;

/// The number of documents that are read at once.
const LIST_PAGE: usize = 200;
/// The time in which the database gives a page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Rows of an answer, a page at a time.
pub(super) type Rows = Result<Vec<Value>, CloudError>;

impl Frontend {
    /// A page of a collection, in the order of partition and id.
    async fn list_page(
        &self,
        collection: &'static str,
        after: Option<&DocumentKey>,
    ) -> Result<Vec<Document>, CloudError> {
        let request = ListRequest {
            collection,
            scope: Scope::Everywhere,
            prefix: "",
            after: after.map(|key| (key.partition.name(), &*key.id)),
            limit: LIST_PAGE,
        };
        let page = self.store.list(&request);
        let page = self.clock.within(PAGE_TIMEOUT, page).await;
        let page = page.unwrap_or_else(|| Err(Error::Unavailable("it does not answer".into())));
        page.map_err(|error| store_error(&error))
    }

    /// The pages of a collection. The last is not full.
    pub(super) fn pages(
        &self,
        collection: &'static str,
    ) -> impl Stream<Item = Result<Vec<Document>, CloudError>> + use<> {
        let frontend = self.clone();
        // After which document the next page begins, and whether there is one.
        let first = (None::<DocumentKey>, true);
        stream::try_unfold(first, move |(after, is_there)| {
            let frontend = frontend.clone();
            async move {
                if !is_there {
                    return Ok(None);
                }
                let page = frontend.list_page(collection, after.as_ref()).await?;
                let last = page.last().map(|last| last.key.clone());
                let is_full = page.len() == LIST_PAGE;
                Ok(Some((page, (last, is_full))))
            }
        })
    }

    /// All documents of a collection of the region, which has few.
    pub(super) async fn all(&self, collection: &'static str) -> Result<Vec<Document>, CloudError> {
        let (mut all, mut pages) = (Vec::new(), Box::pin(self.pages(collection)));
        while let Some(page) = pages.next().await {
            all.extend(page?);
        }
        Ok(all)
    }
}

/// An answer with these rows, as `json` would write it. The first rows are waited for.
pub(super) async fn answered(
    rows: impl Stream<Item = Rows> + Send + 'static,
) -> Result<Response, Failure> {
    let mut rows = Box::pin(rows);
    let first = rows.next().await.transpose()?;
    let begin = Text {
        rows: stream::iter(first.map(Ok)).chain(rows).boxed(),
        ready: VecDeque::from([Bytes::from_static(b"{\n    \"value\": [")]),
        is_first: true,
        has_ended: false,
    };
    let text = stream::unfold(begin, |mut text| async move {
        let next = text.next().await?;
        Some((next, text))
    });
    let mut response = Body::from_stream(text).into_response();
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// The text of an answer whose rows are still read.
struct Text {
    rows: stream::BoxStream<'static, Rows>,
    ready: VecDeque<Bytes>,
    is_first: bool,
    has_ended: bool,
}

impl Text {
    async fn next(&mut self) -> Option<Result<Bytes, CloudError>> {
        while self.ready.is_empty() {
            if self.has_ended {
                return None;
            }
            match self.rows.next().await {
                Some(Ok(rows)) => {
                    let text = self.written(&rows);
                    self.ready.extend((!text.is_empty()).then(|| text.into()));
                }
                Some(Err(error)) => {
                    self.has_ended = true;
                    let why = chain(&error);
                    tracing::error!(why, "a list was ended before it was complete");
                    return Some(Err(error));
                }
                None => {
                    self.has_ended = true;
                    let end = if self.is_first {
                        "]\n}\n"
                    } else {
                        "\n    ]\n}\n"
                    };
                    self.ready.push_back(Bytes::from_static(end.as_bytes()));
                }
            }
        }
        self.ready.pop_front().map(Ok)
    }

    fn written(&mut self, rows: &[Value]) -> Vec<u8> {
        let mut text = Vec::new();
        for row in rows {
            let separator: &[u8] = if self.is_first { b"\n" } else { b",\n" };
            self.is_first = false;
            text.extend_from_slice(separator);
            // A line break in a text is escaped, so that each of these is one of the form.
            let row = pretty(row);
            for (at, line) in row.split(|byte| *byte == b'\n').enumerate() {
                if at > 0 {
                    text.push(b'\n');
                }
                text.extend_from_slice(b"        ");
                text.extend_from_slice(line);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::json;

    use super::*;

    async fn text(response: Response) -> Option<String> {
        #[expect(clippy::disallowed_methods, reason = "the answer of a test is short")]
        let body = response.into_body().collect().await.ok()?;
        Some(String::from_utf8(body.to_bytes().to_vec()).unwrap())
    }

    fn rows(pages: Vec<Rows>) -> impl Stream<Item = Rows> + Send + 'static {
        stream::iter(pages)
    }

    #[tokio::test]
    async fn a_list_has_the_form_of_every_other_answer() {
        let one = json!({"a": {"b": ["line\nbreak"]}, "c": []});
        let pages: [Vec<Vec<Value>>; 5] = [
            vec![],
            vec![vec![]],
            vec![vec![one.clone()]],
            vec![vec![one.clone(), json!({})], vec![], vec![one.clone()]],
            vec![vec![], vec![one]],
        ];
        for pages in pages {
            let all: Vec<_> = pages.iter().flatten().cloned().collect();
            let streamed = answered(rows(pages.into_iter().map(Ok).collect())).await;
            let streamed = text(streamed.unwrap()).await.unwrap();
            let expected = super::super::answer::ok(&json!({ "value": all }));
            assert_eq!(streamed, text(expected).await.unwrap());
        }
    }

    #[tokio::test]
    async fn a_list_that_cannot_be_completed_is_refused_or_cut_and_never_short() {
        let failed = || Err(CloudError::new(503, "DatabaseUnavailable", "", "why"));
        let refused = answered(rows(vec![failed()])).await.unwrap_err();
        assert_eq!(refused.0.code, "DatabaseUnavailable");
        let cut = answered(rows(vec![Ok(vec![json!({})]), failed()])).await;
        assert_eq!(text(cut.unwrap()).await, None);
    }
}
