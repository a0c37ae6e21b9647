//! Payloads as images: assembled, read, compared, extracted, mirrored, verified.
//!
//! A payload is the image of the operator that installs a release, with one layer more: the manifests of all
//! components, the list of their images, and the metadata of the release. All that decides what a payload
//! contains is pure: [`assemble`] turns values into values, [`contents`] into the bytes of a layer, and
//! [`image`] into a manifest. [`builder`], [`reader`] and [`mirror`] read and write registries.
//!
//! Invariants:
//! - the same inputs, in any order, give the same bytes and so the same digest;
//! - the tag of a payload is written last, after everything that it refers to.

// In the order of dependencies.
pub mod go_json;

pub mod image_references;

pub mod release_metadata;

pub mod labels;

pub mod substitution;

pub mod manifest_file;

pub mod contents;

pub mod assemble;

pub mod image;

pub mod input;

pub mod layer_files;

pub mod reader;

pub mod builder;

pub mod info;

pub mod text;

pub mod difference;

pub mod source;

pub mod working_copies;

pub mod changelog;

pub mod bugs;

pub mod extract;

pub mod mirror;

pub mod verify;

pub mod tools;

pub mod signature;

pub mod sample;
