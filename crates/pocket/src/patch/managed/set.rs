//! A set of paths, as a trie.
//!
//! Invariant: the children of a node are sorted by element, each element occurs once, and no
//! child is empty. So equal sets are equal values, and the algebra is a merge of sorted lists.

use std::cmp::Ordering;

use super::Element;

/// A set of paths. A node may itself be a member (`.`) and have children that are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    owned: bool,
    children: Vec<(Element, FieldSet)>,
}

impl FieldSet {
    /// The set whose only member is the node itself.
    pub fn leaf() -> Self {
        Self {
            owned: true,
            children: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        !self.owned && self.children.is_empty()
    }

    /// Whether the node itself is a member.
    pub fn is_owned(&self) -> bool {
        self.owned
    }

    /// Makes the node itself a member.
    pub fn own(&mut self) {
        self.owned = true;
    }

    /// Adds one path.
    pub fn insert(&mut self, path: &[Element]) {
        let Some((first, rest)) = path.split_first() else {
            self.owned = true;
            return;
        };
        let at = match self.position(first) {
            Ok(at) => at,
            Err(at) => {
                self.children.insert(at, (first.clone(), Self::default()));
                at
            }
        };
        self.children[at].1.insert(rest);
    }

    /// Whether the path is a member.
    pub fn contains(&self, path: &[Element]) -> bool {
        match path.split_first() {
            None => self.owned,
            Some((first, rest)) => self.child(first).is_some_and(|child| child.contains(rest)),
        }
    }

    /// Whether every member is one of `other` too.
    pub fn is_subset(&self, other: &Self) -> bool {
        let below = |(element, child): &(Element, Self)| {
            other
                .child(element)
                .is_some_and(|theirs| child.is_subset(theirs))
        };
        (other.owned || !self.owned) && self.children.iter().all(below)
    }

    /// The subset below `element`.
    pub fn child(&self, element: &Element) -> Option<&Self> {
        let at = self.position(element).ok()?;
        Some(&self.children[at].1)
    }

    /// The subset below the field `name`.
    pub fn field(&self, name: &str) -> Option<&Self> {
        let at = self.field_position(name)?;
        Some(&self.children[at].1)
    }

    /// The children of this node, in order.
    pub fn children(&self) -> impl Iterator<Item = (&Element, &Self)> {
        self.children
            .iter()
            .map(|(element, child)| (element, child))
    }

    pub(super) fn into_children(self) -> impl Iterator<Item = (Element, Self)> {
        self.children.into_iter()
    }

    /// Removes everything at and below the field `name`.
    pub fn take_field(&mut self, name: &str) -> Option<Self> {
        let at = self.field_position(name)?;
        Some(self.children.remove(at).1)
    }

    /// Appends a child out of order; [`Self::sort`] must follow.
    pub(in crate::patch) fn push(&mut self, element: Element, child: Self) {
        if !child.is_empty() {
            self.children.push((element, child));
        }
    }

    /// Sorts appended children, merging those with the same element.
    pub(in crate::patch) fn sort(&mut self) {
        if self.children.is_sorted_by(|(a, _), (b, _)| a < b) {
            return;
        }
        self.children.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut joined: Vec<(Element, Self)> = Vec::with_capacity(self.children.len());
        for (element, child) in self.children.drain(..) {
            match joined.last_mut() {
                Some((last, set)) if *last == element => {
                    *set = std::mem::take(set).union(child);
                }
                _ => joined.push((element, child)),
            }
        }
        self.children = joined;
    }

    #[must_use]
    pub fn union(mut self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        self.owned |= other.owned;
        if self.children.is_empty() {
            self.children = other.children;
        } else if !other.children.is_empty() {
            self.children = merge(self.children, other.children);
        }
        self
    }

    /// The union of many sets, two by two: one after the other would move the first as often as
    /// there are sets.
    #[must_use]
    pub fn union_all(mut sets: Vec<Self>) -> Self {
        while sets.len() > 1 {
            let mut pairs = sets.into_iter();
            let mut joined = Vec::new();
            while let Some(one) = pairs.next() {
                joined.push(match pairs.next() {
                    Some(other) => one.union(other),
                    None => one,
                });
            }
            sets = joined;
        }
        sets.pop().unwrap_or_default()
    }

    #[must_use]
    pub fn difference(self, other: &Self) -> Self {
        self.subtract(other, false)
    }

    /// The difference, which also excludes everything below the members of `other`.
    #[must_use]
    pub fn recursive_difference(self, other: &Self) -> Self {
        self.subtract(other, true)
    }

    fn subtract(mut self, other: &Self, deep: bool) -> Self {
        if deep && other.owned {
            return Self::default();
        }
        self.owned &= !other.owned;
        if !other.children.is_empty() {
            self.children.retain_mut(|(element, child)| {
                if let Some(theirs) = other.child(element) {
                    *child = std::mem::take(child).subtract(theirs, deep);
                }
                !child.is_empty()
            });
        }
        self
    }

    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = Self {
            owned: self.owned && other.owned,
            children: Vec::new(),
        };
        for (element, child) in &self.children {
            if let Some(theirs) = other.child(element) {
                both.push(element.clone(), child.intersection(theirs));
            }
        }
        both
    }

    /// The members that have no member below them.
    #[must_use]
    pub fn leaves(&self) -> Self {
        Self {
            owned: self.owned && self.children.is_empty(),
            children: self
                .children
                .iter()
                .map(|(element, child)| (element.clone(), child.leaves()))
                .collect(),
        }
    }

    /// Calls `visit` with the path of every member, parents before children.
    pub fn for_each<'a>(&'a self, visit: &mut impl FnMut(&[&'a Element])) {
        if self.owned {
            visit(&[]);
        }
        self.visit_below(&mut Vec::new(), visit);
    }

    fn visit_below<'a>(
        &'a self,
        path: &mut Vec<&'a Element>,
        visit: &mut impl FnMut(&[&'a Element]),
    ) {
        for (element, child) in &self.children {
            if child.owned {
                path.push(element);
                visit(path);
                path.pop();
            }
        }
        for (element, child) in &self.children {
            path.push(element);
            child.visit_below(path, visit);
            path.pop();
        }
    }

    fn position(&self, element: &Element) -> Result<usize, usize> {
        self.children.binary_search_by(|(e, _)| e.cmp(element))
    }

    fn field_position(&self, name: &str) -> Option<usize> {
        self.children
            .binary_search_by(|(element, _)| element.cmp_field(name))
            .ok()
    }
}

fn merge(a: Vec<(Element, FieldSet)>, b: Vec<(Element, FieldSet)>) -> Vec<(Element, FieldSet)> {
    let mut out = Vec::with_capacity(a.len().max(b.len()));
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    while let (Some((left, _)), Some((right, _))) = (a.peek(), b.peek()) {
        match left.cmp(right) {
            Ordering::Less => out.extend(a.next()),
            Ordering::Greater => out.extend(b.next()),
            Ordering::Equal => {
                if let (Some((element, left)), Some((_, right))) = (a.next(), b.next()) {
                    out.push((element, left.union(right)));
                }
            }
        }
    }
    out.extend(a);
    out.extend(b);
    out
}
