//! Addresses, networks, URLs and quantities.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use super::{
    super::{
        net::{Net, parse_ip},
        quantity::CelQuantity,
        url::Url,
        value::{MapKey, MapValue},
    },
    CallResult, Evaluation, Fault, Val,
};

pub(super) fn global<'a>(name: &str, args: &[Val<'a>]) -> CallResult<'a> {
    let [Val::Text(text)] = args else {
        return None;
    };
    let made = |value: Option<Val<'a>>, what: &str| -> Evaluation<'a> {
        value.ok_or_else(|| {
            Fault::Error(format!("{what} parse error during conversion from string"))
        })
    };
    Some(match name {
        "ip" => made(parse_ip(text).map(Val::Ip), "IP Address"),
        "isIP" => Ok(Val::Bool(parse_ip(text).is_some())),
        "ip.isCanonical" => match parse_ip(text) {
            Some(address) => Ok(Val::Bool(address.to_string() == **text)),
            None => made(None, "IP Address"),
        },
        "cidr" => made(Net::parse(text).map(Val::Net), "network address"),
        "isCIDR" => Ok(Val::Bool(Net::parse(text).is_some())),
        "url" => made(Url::parse(text).map(|url| Val::Url(url.into())), "URL"),
        "isURL" => Ok(Val::Bool(Url::parse(text).is_some())),
        "quantity" => made(CelQuantity::parse(text).map(Val::Quantity), "quantity"),
        "isQuantity" => Ok(Val::Bool(CelQuantity::parse(text).is_some())),
        _ => return None,
    })
}

pub(super) fn method<'a>(name: &str, target: &Val<'a>, args: &[Val<'a>]) -> CallResult<'a> {
    match target {
        Val::Ip(address) if args.is_empty() => ip(name, *address).map(Ok),
        Val::Net(net) => network(name, *net, args),
        Val::Url(url) if args.is_empty() => url_part(name, url).map(Ok),
        Val::Quantity(quantity) => amount(name, *quantity, args),
        _ => None,
    }
}

fn ip<'a>(name: &str, address: IpAddr) -> Option<Val<'a>> {
    Some(match name {
        "family" => Val::Int(if address.is_ipv4() { 4 } else { 6 }),
        "isUnspecified" => Val::Bool(address.is_unspecified()),
        "isLoopback" => Val::Bool(address.is_loopback()),
        "isLinkLocalMulticast" => Val::Bool(link_local_multicast(address)),
        "isLinkLocalUnicast" => Val::Bool(link_local(address)),
        "isGlobalUnicast" => Val::Bool(global_unicast(address)),
        _ => return None,
    })
}

fn link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    }
}

fn link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.octets()[..3] == [224, 0, 0],
        IpAddr::V6(six) => six.segments()[0] & 0xff0f == 0xff02,
    }
}

/// Whatever is one host's own address, private ranges included.
fn global_unicast(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(four) if four.is_broadcast());
    !(address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || broadcast
        || link_local(address))
}

fn network<'a>(name: &str, net: Net, args: &[Val<'a>]) -> CallResult<'a> {
    Some(Ok(match (name, args) {
        ("ip", []) => Val::Ip(net.address),
        ("masked", []) => Val::Net(net.masked()),
        ("prefixLength", []) => Val::Int(i64::from(net.length)),
        ("containsIP", [Val::Ip(address)]) => Val::Bool(net.contains(*address)),
        ("containsIP", [Val::Text(text)]) => match parse_ip(text) {
            Some(address) => Val::Bool(net.contains(address)),
            None => return Some(Fault::error("IP Address parse error")),
        },
        ("containsCIDR", [Val::Net(other)]) => Val::Bool(net.contains_net(*other)),
        ("containsCIDR", [Val::Text(text)]) => match Net::parse(text) {
            Some(other) => Val::Bool(net.contains_net(other)),
            None => return Some(Fault::error("network address parse error")),
        },
        _ => return None,
    }))
}

fn url_part<'a>(name: &str, url: &Url) -> Option<Val<'a>> {
    Some(match name {
        "getScheme" => Val::text(&*url.scheme),
        "getHost" => Val::text(&*url.host),
        "getHostname" => Val::text(url.hostname()),
        "getPort" => Val::text(url.port()),
        "getEscapedPath" => Val::text(&*url.path),
        "getQuery" => query(url),
        _ => return None,
    })
}

fn query<'a>(url: &Url) -> Val<'a> {
    let mut grouped: BTreeMap<MapKey, Vec<Val<'a>>> = BTreeMap::new();
    for (name, value) in &url.query {
        let key = MapKey::Text(Arc::from(&**name));
        grouped.entry(key).or_default().push(Val::text(&**value));
    }
    let lists = grouped
        .into_iter()
        .map(|(key, values)| (key, Val::list(values)))
        .collect::<BTreeMap<_, _>>();
    Val::Map(MapValue::Made(lists.into()))
}

fn amount<'a>(name: &str, quantity: CelQuantity, args: &[Val<'a>]) -> CallResult<'a> {
    let outcome = match (name, args) {
        ("sign", []) => Val::Int(quantity.sign()),
        ("isInteger", []) => Val::Bool(quantity.as_integer().is_some()),
        ("asApproximateFloat", []) => Val::Double(quantity.as_float()),
        ("asInteger", []) => match quantity.as_integer() {
            Some(n) => Val::Int(n),
            None => return Some(Fault::error("cannot convert value to integer")),
        },
        (name, [Val::Quantity(other)]) => return with(name, quantity, *other),
        (name @ ("add" | "sub"), [Val::Int(n)]) => {
            return with(name, quantity, CelQuantity::from_int(*n));
        }
        _ => return None,
    };
    Some(Ok(outcome))
}

fn with<'a>(name: &str, left: CelQuantity, right: CelQuantity) -> CallResult<'a> {
    let sum = |value: Option<CelQuantity>| {
        value
            .map(Val::Quantity)
            .ok_or_else(|| Fault::Error("quantity overflow".into()))
    };
    Some(match name {
        "add" => sum(left.add(right)),
        "sub" => sum(left.sub(right)),
        "isLessThan" => Ok(Val::Bool(left < right)),
        "isGreaterThan" => Ok(Val::Bool(left > right)),
        "compareTo" => Ok(Val::Int(left.cmp(&right) as i64)),
        _ => return None,
    })
}
