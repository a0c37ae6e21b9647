//! The listen address: parsing, binding, and the names under which clients reach it.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use tokio::net::TcpListener;

use crate::exit::{Exit, Failure};

const DEFAULT_PORT: u16 = 6443;
/// The names under which pods reach the server, whatever its address.
const SERVICE_NAMES: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Host and port to listen on, as the user wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listen {
    /// A name, or an address without brackets.
    host: String,
    /// 0 for any free port.
    port: u16,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: DEFAULT_PORT,
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", bracketed(&self.host), self.port)
    }
}

/// Why a text is not a listen address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    #[error("no host before the port; write 127.0.0.1:6443, or 0.0.0.0:6443 for all addresses")]
    NoHost,
    #[error("{0:?} is not a port; a port is a number from 0 to 65535")]
    BadPort(String),
    #[error("{0:?} is not a host name or address; write HOST:PORT, or [ADDRESS]:PORT for IPv6")]
    BadHost(String),
}

impl FromStr for Listen {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let default = Self::default();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let port = parse_port(text)?;
            return Ok(Self { port, ..default });
        }
        let (host, port) = split(text)?;
        if host.is_empty() {
            return Err(ParseError::NoHost);
        }
        if !is_host(host) {
            return Err(ParseError::BadHost(host.to_owned()));
        }
        // Normalized, because an address has several spellings and the certificate contains one.
        let address = host.parse::<IpAddr>();
        Ok(Self {
            host: address.map_or_else(|_| host.to_owned(), |ip| ip.to_string()),
            port: port.map_or(Ok(default.port), parse_port)?,
        })
    }
}

fn split(text: &str) -> Result<(&str, Option<&str>), ParseError> {
    if text.parse::<Ipv6Addr>().is_ok() {
        return Ok((text, None));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let bad = || ParseError::BadHost(text.to_owned());
        let (host, rest) = rest.split_once(']').ok_or_else(bad)?;
        host.parse::<Ipv6Addr>().map_err(|_| bad())?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(bad()),
        };
    }
    match text.split_once(':') {
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((text, None)),
    }
}

fn parse_port(text: &str) -> Result<u16, ParseError> {
    text.parse()
        .map_err(|_| ParseError::BadPort(text.to_owned()))
}

fn is_host(host: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    host.parse::<IpAddr>().is_ok() || host.chars().all(name)
}

fn bracketed(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

impl Listen {
    /// Opens the socket.
    pub(super) async fn bind(&self) -> Result<(TcpListener, Address), Failure> {
        let bound = async {
            let listener = TcpListener::bind((self.host.as_str(), self.port)).await?;
            let local = listener.local_addr()?;
            Ok((listener, local))
        };
        let (listener, local) = bound.await.map_err(|error| self.refused(&error))?;
        let host = self.host.clone();
        Ok((listener, Address { host, local }))
    }

    fn refused(&self, error: &io::Error) -> Failure {
        let what = format!("cannot listen on {self}");
        let why = error.to_string();
        let (code, why, remedy) = match error.kind() {
            io::ErrorKind::AddrInUse => (
                "NT-UP-0001",
                "another process uses the port".to_owned(),
                format!(
                    "stop that process, or use a free port: neap up --listen {}:0",
                    bracketed(&self.host)
                ),
            ),
            io::ErrorKind::PermissionDenied => (
                "NT-UP-0002",
                why,
                "ports below 1024 need privileges; use a higher one, such as 6443".to_owned(),
            ),
            _ => (
                "NT-UP-0002",
                why,
                "use an address of this machine, such as --listen 127.0.0.1:6443".to_owned(),
            ),
        };
        Failure::new(code, Exit::Refused, &what, &why).remedy(remedy)
    }
}

/// The address that the server is bound to.
#[derive(Debug)]
pub(super) struct Address {
    host: String,
    local: SocketAddr,
}

impl Address {
    /// The URL for clients on this machine.
    pub(super) fn url(&self) -> String {
        format!("https://{}", self.host_and_port())
    }

    /// The URL without its scheme.
    pub(super) fn host_and_port(&self) -> String {
        format!("{}:{}", bracketed(&self.client_host()), self.local.port())
    }

    /// The host for clients on this machine.
    pub(super) fn client_host(&self) -> String {
        match self.local.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
            _ => self.host.clone(),
        }
    }

    /// The port, chosen by the operating system if the user passed 0.
    pub(super) fn port(&self) -> u16 {
        self.local.port()
    }

    /// Whether other machines can connect.
    pub(super) fn reachable_from_outside(&self) -> bool {
        !self.local.ip().is_loopback()
    }

    /// The names and addresses that the serving certificate must cover; `service` is the cluster IP of
    /// the Service `kubernetes`.
    pub(super) fn certificate_names(&self, service: Ipv4Addr) -> Vec<String> {
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".into(), "::1".into()];
        names.extend(SERVICE_NAMES.map(str::to_owned));
        names.push(service.to_string());
        for name in [self.host.clone(), self.local.ip().to_string()] {
            let unspecified = name.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified());
            if !unspecified && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

#[cfg(test)]
mod tests;
