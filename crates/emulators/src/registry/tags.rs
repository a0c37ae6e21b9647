//! Lists of tags and repositories, in pages.

use http::{HeaderValue, Response, Uri, header};
use neap_kit::client::{Body, percent_encoded};
use serde_json::{Value, json};

use super::{
    Answer, Registry,
    error::{ErrorCode, RegistryError},
    names::RepositoryName,
};

/// The part of a list that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Page {
    /// The most entries; none for as many as the registry gives.
    count: Option<usize>,
    /// The entry after which it begins.
    last: Option<String>,
}

impl Page {
    fn of(uri: &Uri) -> Result<Self, RegistryError> {
        let mut page = Self {
            count: None,
            last: None,
        };
        for (key, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            match &*key {
                "n" => {
                    let count = value.parse().map_err(|_| {
                        let message = "the number of entries is not a number";
                        RegistryError::new(ErrorCode::PaginationNumberInvalid, message)
                            .about("n", &value)
                    })?;
                    page.count = Some(count);
                }
                "last" => page.last = Some(value.into_owned()),
                _ => {}
            }
        }
        Ok(page)
    }

    /// The entries of the page, and the last of them if there are more. `names` are sorted.
    fn cut(&self, names: &[String], max: usize) -> (Vec<String>, Option<String>) {
        let begin = match &self.last {
            None => 0,
            Some(last) => names.partition_point(|name| name <= last),
        };
        let count = self.count.unwrap_or(max).min(max);
        let left = &names[begin..];
        let page = &left[..count.min(left.len())];
        let more = page.len() < left.len();
        let last = page.last().filter(|_| more).cloned();
        (page.to_vec(), last)
    }
}

impl Registry {
    pub(super) fn list_tags(&self, name: &RepositoryName, uri: &Uri) -> Answer {
        let page = Page::of(uri)?;
        let tags: Vec<_> = {
            let index = self.index.lock();
            let repository = index.repository(name).ok_or_else(|| {
                let message = "there is no such repository";
                RegistryError::new(ErrorCode::NameUnknown, message).about("name", name)
            })?;
            repository.tags.keys().map(ToString::to_string).collect()
        };
        let (tags, last) = page.cut(&tags, self.settings.max_page);
        let count = page.count.unwrap_or(tags.len());
        let list = json!({"name": name.as_str(), "tags": tags});
        Ok(list_answer(&list, uri.path(), count, last.as_deref()))
    }

    pub(super) fn catalog(&self, uri: &Uri) -> Answer {
        let page = Page::of(uri)?;
        let index = self.index.lock();
        let names: Vec<_> = index.names().map(ToString::to_string).collect();
        let (names, last) = page.cut(&names, self.settings.max_page);
        let count = page.count.unwrap_or(names.len());
        let list = json!({ "repositories": names });
        Ok(list_answer(&list, uri.path(), count, last.as_deref()))
    }
}

fn list_answer(list: &Value, path: &str, count: usize, last: Option<&str>) -> Response<Body> {
    let mut response = Response::new(Body::from(list.to_string()));
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    let link = last.map(|last| {
        let last = percent_encoded(last);
        format!("<{path}?last={last}&n={count}>; rel=\"next\"")
    });
    if let Some(link) = link.and_then(|link| HeaderValue::from_str(&link).ok()) {
        headers.insert(header::LINK, link);
    }
    response
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Following the pages shows every entry once and in order, however long they are.
        #[test]
        fn pages_show_everything_once(
            names in prop::collection::btree_set("[a-c]{1,4}", 0..30),
            count in 1_usize..7,
            max in 1_usize..7,
        ) {
            let names: Vec<_> = names.into_iter().collect();
            let mut seen = Vec::new();
            let mut last = None;
            for _ in 0..=names.len() {
                let page = Page { count: Some(count), last: last.take() };
                let (entries, next) = page.cut(&names, max);
                prop_assert!(entries.len() <= count.min(max));
                seen.extend(entries);
                last = next;
                if last.is_none() {
                    break;
                }
            }
            prop_assert_eq!(seen, names);
        }
    }

    #[test]
    fn a_page_of_no_entries_is_empty_and_the_last_one() {
        let page = Page {
            count: Some(0),
            last: None,
        };
        let names = vec!["a".to_owned()];
        assert_eq!(page.cut(&names, 10), (vec![], None));
    }
}
