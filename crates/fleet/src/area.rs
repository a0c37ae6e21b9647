//! What `fleet` registers with the program.

mod codes;
mod installation;

use neap_kit::area::{Area, Metric};

/// The registration of this area.
pub const AREA: Area = Area {
    codes: codes::ENTRIES,
    foreign_kinds: &[installation::KIND],
    metrics: &[
        Metric {
            name: "neaptide_http_requests",
            help: "Requests to the frontend by route and status",
        },
        Metric {
            name: "neaptide_fleet_queue_length",
            help: "Clusters and subscriptions that wait for work or are worked on",
        },
    ],
    ..Area::new("fleet", "clusters")
};

#[cfg(test)]
mod tests {
    use super::AREA;

    #[test]
    fn the_registration_is_complete() {
        assert_eq!(AREA.problems(), [""; 0]);
    }
}
