//! Times as settings: seconds, or `DD:HH:MM:SS`.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let time = match Option::<Time>::deserialize(deserializer)? {
        None => return Ok(None),
        Some(Time::Seconds(seconds)) => Duration::try_from_secs_f64(seconds).map_err(D::Error::custom)?,
        Some(Time::Text(text)) => of_text(&text)
            .ok_or_else(|| D::Error::custom(format!("{text:?} is not a time, expected seconds, or \"DD:HH:MM:SS\"")))?,
    };
    Ok(Some(time))
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected seconds, or \"DD:HH:MM:SS\"")]
enum Time {
    Seconds(f64),
    Text(String),
}

fn of_text(text: &str) -> Option<Duration> {
    let parts: Vec<u64> = text.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [days, hours, minutes, seconds] = parts[..] else { return None };
    let hours = days.checked_mul(24)?.checked_add(hours)?;
    let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
    minutes.checked_mul(60)?.checked_add(seconds).map(Duration::from_secs)
}
