//! What is tried: how far the data plane lags, how much is asked, and how.

use std::{fmt, str::FromStr, time::Duration};

use serde::Serialize;

/// Seconds between what the server says and where new connections go.
pub const LAGS: [u64; 4] = [0, 1, 5, 20];
/// Requests in a second.
pub const RATES: [u32; 3] = [1, 50, 500];

/// What clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1, with and without a body.
    Http1,
    /// Unary calls over HTTP/2.
    Grpc,
    /// Bytes that come back as they were sent.
    Tcp,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Http1, Self::Grpc, Self::Tcp];

    /// What the port of the Service is called, by which a resolver knows what is spoken there.
    pub fn port_name(self) -> &'static str {
        match self {
            Self::Http1 => "http",
            Self::Grpc => "grpc",
            Self::Tcp => "tcp",
        }
    }

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Grpc => "grpc",
            Self::Tcp => "tcp",
        }
    }
}

/// One of those that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// So many seconds the data plane lags at most, on each node.
    pub lag: u64,
    /// So many requests come in a second.
    pub rate: u32,
    /// What is spoken.
    pub protocol: Protocol,
}

impl Cell {
    /// All that are asked for, the cheapest first.
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

    /// How far the data plane lags.
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
