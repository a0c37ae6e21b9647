use neap_kit::key::Key;

use crate::resolver::http::HostRouting;

#[test]
fn a_service_is_named_in_full_or_not_at_all() {
    let naming = HostRouting::default();
    let read = |named: &str| {
        let read = naming.parse_host(named);
        read.map(|(key, port)| (key.to_string(), port))
    };
    let cart = || Key::new("shop", "cart").to_string();
    for named in [
        "cart.shop",
        "cart.shop.svc",
        "cart.shop.svc.cluster.local",
        "CART.shop.svc.Cluster.Local.",
        "http://cart.shop.svc.cluster.local",
        "cart.shop.svc.cluster.local/*",
    ] {
        assert_eq!(read(named), Some((cart(), None)), "{named}");
    }
    for named in [
        "cart.shop:8080",
        "cart.shop.svc:8080",
        "cart.shop.svc.cluster.local:8080/test/*",
    ] {
        assert_eq!(read(named), Some((cart(), Some(8080))), "{named}");
    }
    for named in [
        "cart",
        "",
        "cart.",
        ".shop",
        "cart.shop.example.com",
        "cart.shop.svc.other.domain",
        "www.cart.shop.svc",
        "cart.shop:http",
        "[::1]:80",
        "https://cart.shop",
    ] {
        assert_eq!(read(named), None, "{named}");
    }
}
