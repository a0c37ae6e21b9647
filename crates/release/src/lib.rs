//! Image streams become release payloads: assembled, verified by jobs, judged and published.
