//! Parts of timestamps and durations.
//!
//! A zone may be `UTC` or an offset such as `+02:00`. Named zones need a database outside the
//! program, which rules may not depend on.

use jiff::{SignedDuration, Timestamp, Zoned, tz::TimeZone};

use super::{CallResult, Fault, Val};

pub(super) fn of_time<'a>(name: &str, time: Timestamp, args: &[Val<'a>]) -> CallResult<'a> {
    let zone = match args {
        [] => Some(TimeZone::UTC),
        [Val::Text(name)] => zone(name),
        _ => return None,
    };
    let Some(zone) = zone else {
        return Some(Fault::error(
            "only UTC and offsets such as +02:00 are known as zones",
        ));
    };
    part(name, &time.to_zoned(zone)).map(|n| Ok(Val::Int(n)))
}

fn part(name: &str, time: &Zoned) -> Option<i64> {
    Some(match name {
        "getFullYear" => i64::from(time.year()),
        "getMonth" => i64::from(time.month()) - 1,
        "getDate" => i64::from(time.day()),
        "getDayOfMonth" => i64::from(time.day()) - 1,
        "getDayOfWeek" => i64::from(time.weekday().to_sunday_zero_offset()),
        "getDayOfYear" => i64::from(time.day_of_year()) - 1,
        "getHours" => i64::from(time.hour()),
        "getMinutes" => i64::from(time.minute()),
        "getSeconds" => i64::from(time.second()),
        "getMilliseconds" => i64::from(time.millisecond()),
        _ => return None,
    })
}

fn zone(name: &str) -> Option<TimeZone> {
    if name == "UTC" || name == "Z" {
        return Some(TimeZone::UTC);
    }
    let (sign, rest) = match name.as_bytes().first()? {
        b'-' => (-1, &name[1..]),
        b'+' => (1, &name[1..]),
        _ => (1, name),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let seconds = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
    let offset = jiff::tz::Offset::from_seconds(sign * seconds).ok()?;
    Some(TimeZone::fixed(offset))
}

/// The whole duration in the unit that `name` asks for.
pub(super) fn of_span<'a>(name: &str, span: SignedDuration) -> CallResult<'a> {
    let n = match name {
        "getHours" => span.as_hours(),
        "getMinutes" => span.as_mins(),
        "getSeconds" => span.as_secs(),
        "getMilliseconds" => i64::from(span.subsec_millis()),
        _ => return None,
    };
    Some(Ok(Val::Int(n)))
}
