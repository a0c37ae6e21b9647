//! The tested conditions: the lag of the data plane, the request rate, and the protocol.

use std::{fmt, str::FromStr, time::Duration};

use serde::Serialize;

/// Seconds between a change on the server and its effect on new connections.
pub const LAGS: [u64; 4] = [0, 1, 5, 20];
/// Requests per second.
pub const RATES: [u32; 3] = [1, 50, 500];

/// The protocol of the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1, with and without a body.
    Http1,
    /// Unary calls over HTTP/2.
    Grpc,
    /// Bytes that are echoed.
    Tcp,
}

impl Protocol {
    pub const ALL: [Self; 3] = [Self::Http1, Self::Grpc, Self::Tcp];

    /// The name of the Service port, by which a resolver knows the protocol.
    pub fn port_name(self) -> &'static str {
        match self {
            Self::Http1 => "http",
            Self::Grpc => "grpc",
            Self::Tcp => "tcp",
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Grpc => "grpc",
            Self::Tcp => "tcp",
        }
    }
}

/// A combination of conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Seconds that the data plane lags at most, on each node.
    pub lag: u64,
    /// Requests per second.
    pub rate: u32,
    pub protocol: Protocol,
}

impl Cell {
    /// All combinations, the cheapest first.
    pub fn all() -> Vec<Self> {
        let lags = |rate| LAGS.into_iter().map(move |lag| (rate, lag));
        let both = RATES.into_iter().flat_map(lags);
        let each = both.flat_map(|(rate, lag)| {
            Protocol::ALL.map(|protocol| Self {
                lag,
                rate,
                protocol,
            })
        });
        each.collect()
    }

    /// The lag of the data plane.
    pub fn lags(self) -> Duration {
        Duration::from_secs(self.lag)
    }
}

impl FromStr for Cell {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text}: a cell is LAG,RATE,PROTOCOL, such as 5,50,http1");
        let mut parts = text.split(',');
        let (Some(lag), Some(rate), Some(spoken), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let known = |it: &Protocol| it.word() == spoken;
        Ok(Self {
            lag: lag.parse().map_err(|_| wrong())?,
            rate: rate.parse().map_err(|_| wrong())?,
            protocol: Protocol::ALL.into_iter().find(known).ok_or_else(wrong)?,
        })
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.lag, self.rate, self.protocol.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_read_as_it_is_written() {
        let all = Cell::all();
        assert_eq!(all.len(), 36);
        for cell in all {
            assert_eq!(cell.to_string().parse(), Ok(cell));
        }
        for wrong in ["", "1,2", "1,2,udp", "1,2,tcp,3", "x,2,tcp"] {
            assert!(wrong.parse::<Cell>().is_err(), "{wrong}");
        }
    }
}
