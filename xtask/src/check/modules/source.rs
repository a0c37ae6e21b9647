//! A Rust file, read far enough to see which modules it names.

/// The text of a file without comments, strings and test modules; line breaks stay where they were.
pub(super) struct Source(String);

impl Source {
    pub(super) fn new(text: &str) -> Self {
        Self(without_tests(&without_comments(text)))
    }

    /// The modules that `mod name;` lines declare, in their order, test modules left out.
    pub(super) fn declared_modules(&self) -> Vec<String> {
        let lines: Vec<_> = self.0.lines().map(str::trim).collect();
        let is_test = |at: usize| at > 0 && lines[at - 1] == "#[cfg(test)]";
        let modules = lines.iter().enumerate().filter_map(|(at, line)| {
            let name = line.strip_suffix(';')?.rsplit_once("mod ")?.1;
            (is_name(name) && !is_test(at)).then(|| name.to_owned())
        });
        modules.collect()
    }

    /// The top-level modules of the crate that the file names, each with its line. `depth` is the number
    /// of modules from the crate's root down to the file, and of the `super::` that lead back to the root.
    pub(super) fn uses(&self, depth: usize) -> Vec<(String, usize)> {
        let mut found = Vec::new();
        for (at, word) in words(&self.0) {
            if !self.0[..at].ends_with("::") && (word == "crate" || word == "super") {
                self.path(at, depth, &mut found);
            }
        }
        found.sort();
        found.dedup_by(|one, other| one.0 == other.0);
        found
    }

    /// Reads the path that begins at `at` with `crate` or `super`.
    fn path(&self, at: usize, depth: usize, found: &mut Vec<(String, usize)>) {
        let rest = &self.0[at..];
        let above = if rest.starts_with("crate") { depth } else { 1 };
        let Some(tail) = rest["crate".len()..].strip_prefix("::") else {
            return;
        };
        self.tree(
            at + rest.len() - tail.len(),
            depth - above.min(depth),
            found,
        );
    }

    /// Reads what follows `::` in a module that lies `depth` below the crate's root: a name, another
    /// `super`, or a list of them in braces.
    fn tree(&self, at: usize, depth: usize, found: &mut Vec<(String, usize)>) {
        let rest = &self.0[at..];
        if rest.starts_with('{') {
            for item in items(rest) {
                self.tree(at + item, depth, found);
            }
            return;
        }
        let name = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        if name == "super" && depth > 0 {
            if rest["super".len()..].starts_with("::") {
                self.tree(at + "super::".len(), depth - 1, found);
            }
        } else if depth == 0 && !name.is_empty() {
            let line = self.0[..at].matches('\n').count() + 1;
            found.push((name.to_owned(), line));
        }
    }
}

/// Where the items of the list begin that `text` begins with.
fn items(text: &str) -> Vec<usize> {
    let mut items = Vec::new();
    let (mut depth, mut expects_item) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '{' => {
                if depth > 0 && expects_item {
                    items.push(at);
                }
                depth += 1;
                expects_item = depth == 1;
            }
            '}' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            ',' if depth == 1 => expects_item = true,
            c if depth == 1 && expects_item && is_word(c) => {
                items.push(at);
                expects_item = false;
            }
            _ => {}
        }
    }
    items
}

/// Every word with its place.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = text
        .char_indices()
        .filter(|&(at, c)| is_word(c) && !text[..at].chars().next_back().is_some_and(is_word));
    starts.map(|(at, _)| {
        let rest = &text[at..];
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        (at, &rest[..end])
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_word)
}

/// Replaces comments, strings and characters by blanks.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = skipped(rest, out.chars().next_back()).unwrap_or(0);
        if length == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
            out.extend(rest[..length].chars().map(blank));
            rest = &rest[length..];
        }
    }
    out
}

/// How long the comment, string or character is that `rest` begins with.
fn skipped(rest: &str, before: Option<char>) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(rest.find("*/").map_or(rest.len(), |end| end + 2));
    }
    if rest.starts_with('"') {
        return Some(end_of_string(rest));
    }
    if !before.is_some_and(is_word)
        && let Some(raw) = rest.strip_prefix('r')
        && let hashes = raw.len() - raw.trim_start_matches('#').len()
        && raw[hashes..].starts_with('"')
    {
        let end = format!("\"{}", "#".repeat(hashes));
        let body = 1 + hashes + 1;
        return Some(
            rest[body..]
                .find(&end)
                .map_or(rest.len(), |at| body + at + end.len()),
        );
    }
    let mut chars = rest.strip_prefix('\'')?.char_indices();
    match chars.next()?.1 {
        '\\' => rest[2..].find('\'').map(|at| at + 3),
        _ => (chars.next()?.1 == '\'').then(|| 1 + chars.offset()),
    }
}

fn end_of_string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Replaces the bodies of `#[cfg(test)] mod name { … }` by blanks.
fn without_tests(text: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = text.to_owned();
    let mut from = 0;
    while let Some(at) = out[from..].find(MARK).map(|at| from + at) {
        from = at + MARK.len();
        let Some(open) = out[from..].find(['{', ';']).map(|open| from + open) else {
            break;
        };
        let opens_module =
            out[from..open].trim_start().contains("mod ") && out[open..].starts_with('{');
        if !opens_module {
            continue;
        }
        let end = open + end_of_block(&out[open..]);
        let blank: String = out[open..end]
            .chars()
            .map(|c| if c == '\n' { '\n' } else { ' ' })
            .collect();
        out.replace_range(open..end, &blank);
        from = end;
    }
    out
}

fn end_of_block(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}
