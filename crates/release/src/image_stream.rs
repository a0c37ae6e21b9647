//! ImageStreams on any cluster: the kind, and the controller that imports its tags.

pub mod api;
