//! The values of one column of a batch.

use std::collections::BTreeMap;
use std::str::FromStr;

use arrow_array::cast::AsArray;
use arrow_array::timezone::Tz;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowTemporalType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DecimalType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};

/// Whether values of this type are numbers, or are all missing.
pub(super) fn is_number(dtype: &DataType) -> bool {
    use DataType as D;
    match dtype {
        D::Null | D::Boolean | D::Float16 | D::Float32 | D::Float64 => true,
        D::Decimal32(..) | D::Decimal64(..) | D::Decimal128(..) | D::Decimal256(..) => true,
        D::Dictionary(_, value) => is_number(value) && !matches!(**value, D::Dictionary(..)),
        other => other.is_integer(),
    }
}

/// Whether values of this type are text, or dates and times, which are read as text of ISO 8601.
pub(super) fn is_text(dtype: &DataType) -> bool {
    match dtype {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => true,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => matches!(**value, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
        _ => false,
    }
}

/// Evaluates the expression with `$T` as the Arrow type of an integer, or the last expression for any other type.
macro_rules! for_integer {
    ($dtype:expr, $T:ident => $run:expr, $otherwise:expr) => {
        for_integer!(@each $dtype, $T => $run, $otherwise;
            Int8 Int8Type, Int16 Int16Type, Int32 Int32Type, Int64 Int64Type,
            UInt8 UInt8Type, UInt16 UInt16Type, UInt32 UInt32Type, UInt64 UInt64Type)
    };
    (@each $dtype:expr, $T:ident => $run:expr, $otherwise:expr; $($variant:ident $type:ident),*) => {
        match $dtype {
            $(DataType::$variant => {
                type $T = $type;
                $run
            })*
            _ => $otherwise,
        }
    };
}

/// The numbers of a column, or of all lists in it.
pub(super) struct Numbers {
    /// As `f64`, exact except for integers beyond 2⁵³ and decimals, which are rounded; `None` for a missing value.
    pub(super) values: Vec<Option<f64>>,
    /// The whole numbers that `f64` rounds, by row.
    pub(super) wholes: BTreeMap<usize, i128>,
}

pub(super) fn numbers(array: &dyn Array) -> Numbers {
    fn exact(values: Vec<Option<f64>>) -> Numbers {
        Numbers { values, wholes: BTreeMap::new() }
    }
    fn of<T: ArrowPrimitiveType>(array: &dyn Array, to: impl Fn(T::Native) -> f64) -> Numbers {
        exact(array.as_primitive::<T>().iter().map(|value| value.map(&to)).collect())
    }
    /// Numbers of which some are whole.
    fn large(numbers: impl Iterator<Item = Option<(f64, Option<i128>)>>) -> Numbers {
        let mut wholes = BTreeMap::new();
        let value = |(row, number): (usize, Option<(f64, Option<i128>)>)| {
            let (value, whole) = number?;
            wholes.extend(whole.filter(|&whole| value as i128 != whole).map(|whole| (row, whole)));
            Some(value)
        };
        let values = numbers.enumerate().map(value).collect();
        Numbers { values, wholes }
    }
    fn decimals<T: DecimalType>(array: &dyn Array) -> Numbers {
        let decimals: &PrimitiveArray<T> = array.as_primitive::<T>();
        large((0..decimals.len()).map(|row| {
            let text = decimals.is_valid(row).then(|| decimals.value_as_string(row))?;
            // Those with a fraction are not whole.
            Some((text.parse().unwrap_or(f64::NAN), text.parse().ok()))
        }))
    }
    match array.data_type() {
        DataType::Null => exact(vec![None; array.len()]),
        DataType::Boolean => {
            exact(array.as_boolean().iter().map(|value| value.map(|truth| f64::from(u8::from(truth)))).collect())
        }
        DataType::Float16 => of::<Float16Type>(array, |value| value.to_f64()),
        DataType::Float32 => of::<Float32Type>(array, f64::from),
        DataType::Float64 => of::<Float64Type>(array, |value| value),
        DataType::Int64 => {
            large(array.as_primitive::<Int64Type>().iter().map(|value| value.map(|whole| (whole as f64, Some(whole.into())))))
        }
        DataType::UInt64 => {
            large(array.as_primitive::<UInt64Type>().iter().map(|value| value.map(|whole| (whole as f64, Some(whole.into())))))
        }
        DataType::Decimal32(..) => decimals::<Decimal32Type>(array),
        DataType::Decimal64(..) => decimals::<Decimal64Type>(array),
        DataType::Decimal128(..) => decimals::<Decimal128Type>(array),
        DataType::Decimal256(..) => decimals::<Decimal256Type>(array),
        DataType::Dictionary(..) => {
            let (values, keys) = dictionary(array);
            let Numbers { values, wholes } = numbers(values);
            let whole = |(row, key): (usize, &Option<usize>)| Some((row, *wholes.get(&(*key)?)?));
            Numbers {
                wholes: keys.iter().enumerate().filter_map(whole).collect(),
                values: keys.iter().map(|key| key.and_then(|key| values[key])).collect(),
            }
        }
        dtype => {
            for_integer!(dtype, T => of::<T>(array, |value| value as f64), unreachable!("{dtype} is no number, which was checked"))
        }
    }
}

/// Values as text: the values that are present, and for each row the index of its value among them, if it has one.
pub(super) struct Texts {
    pub(super) values: Vec<String>,
    pub(super) rows: Vec<Option<usize>>,
}

/// The values as text, without surrounding blanks.
pub(super) fn texts(array: &dyn Array) -> Texts {
    fn plain<'a>(rows: impl Iterator<Item = Option<&'a str>>) -> Texts {
        each(rows.map(|value| value.map(|text| text.trim().to_owned())))
    }
    fn each(rows: impl Iterator<Item = Option<String>>) -> Texts {
        let mut texts = Texts { values: Vec::new(), rows: Vec::new() };
        for value in rows {
            texts.rows.push(value.map(|value| {
                texts.values.push(value);
                texts.values.len() - 1
            }));
        }
        texts
    }
    match array.data_type() {
        DataType::Utf8 => plain(array.as_string::<i32>().iter()),
        DataType::LargeUtf8 => plain(array.as_string::<i64>().iter()),
        DataType::Utf8View => plain(array.as_string_view().iter()),
        // The shortest text that stands for the number: of an `f64` of the same value it would be longer.
        DataType::Float32 => each(array.as_primitive::<Float32Type>().iter().map(|value| value.map(|value| value.to_string()))),
        DataType::Float16 => each(array.as_primitive::<Float16Type>().iter().map(|value| value.map(|value| value.to_string()))),
        // As pandas writes them to CSV files.
        DataType::Boolean => {
            each(array.as_boolean().iter().map(|value| value.map(|truth| if truth { "True" } else { "False" }.to_owned())))
        }
        DataType::Date32 => each(dates::<Date32Type>(array)),
        DataType::Date64 => each(dates::<Date64Type>(array)),
        DataType::Timestamp(unit, zone) => {
            let zone = zone.as_deref();
            match unit {
                TimeUnit::Second => each(timestamps::<TimestampSecondType>(array, zone)),
                TimeUnit::Millisecond => each(timestamps::<TimestampMillisecondType>(array, zone)),
                TimeUnit::Microsecond => each(timestamps::<TimestampMicrosecondType>(array, zone)),
                TimeUnit::Nanosecond => each(timestamps::<TimestampNanosecondType>(array, zone)),
            }
        }
        DataType::Dictionary(..) => {
            let (values, keys) = dictionary(array);
            let of_values = texts(values);
            let rows = keys.into_iter().map(|key| key.and_then(|key| of_values.rows[key])).collect();
            Texts { values: of_values.values, rows }
        }
        dtype => {
            for_integer!(dtype, T => each(array.as_primitive::<T>().iter().map(|value| value.map(|value| value.to_string()))),
            each(numbers(array).values.into_iter().map(|value| value.map(|value| value.to_string()))))
        }
    }
}

/// Dates as text; beyond the years that can be written they are missing.
fn dates<T: ArrowTemporalType>(array: &dyn Array) -> impl Iterator<Item = Option<String>>
where
    i64: From<T::Native>,
{
    let array = array.as_primitive::<T>();
    (0..array.len()).map(|row| {
        let date = array.is_valid(row).then(|| array.value_as_datetime(row)).flatten();
        date.map(|date| date.format("%Y-%m-%d").to_string())
    })
}

/// Times as text, with as many digits of a second as they have: those of the clock in their time zone, with its offset from UTC,
/// as a CSV file of the same data has them. Beyond the years that can be written, times are missing.
fn timestamps<T: ArrowTemporalType>(array: &dyn Array, zone: Option<&str>) -> impl Iterator<Item = Option<String>>
where
    i64: From<T::Native>,
{
    const TIME: &str = "%Y-%m-%dT%H:%M:%S%.f";
    let array = array.as_primitive::<T>();
    // In a time zone of an unknown name, times are those of UTC.
    let utc = || Tz::from_str("+00:00").expect("it is an offset");
    let zone = zone.map(|zone| Tz::from_str(zone).unwrap_or_else(|_| utc()));
    (0..array.len()).map(move |row| {
        let row = array.is_valid(row).then_some(row)?;
        match zone {
            Some(zone) => Some(array.value_as_datetime_with_tz(row, zone)?.format(&format!("{TIME}%:z")).to_string()),
            None => Some(array.value_as_datetime(row)?.format(TIME).to_string()),
        }
    })
}

/// The values of a dictionary, and for each row the index of its value.
fn dictionary(array: &dyn Array) -> (&dyn Array, Vec<Option<usize>>) {
    fn of<K: ArrowDictionaryKeyType>(array: &dyn Array) -> (&dyn Array, Vec<Option<usize>>) {
        let dictionary = array.as_dictionary::<K>();
        let n_values = dictionary.values().len();
        // A key beyond the values counts as missing; readers reject such files.
        let keys = (0..dictionary.len()).map(|row| dictionary.key(row).filter(|&key| key < n_values));
        (dictionary.values().as_ref(), keys.collect())
    }
    let DataType::Dictionary(key, _) = array.data_type() else {
        unreachable!("{} is no dictionary, which the caller has seen", array.data_type());
    };
    for_integer!(key.as_ref(), K => of::<K>(array), unreachable!("{key} is no key that Arrow allows"))
}

#[cfg(test)]
mod tests {
    use arrow_array::{BooleanArray, TimestampSecondArray};

    use super::*;

    #[track_caller]
    fn check(array: &dyn Array, expected: &[Option<&str>]) {
        let found = texts(array);
        let rows: Vec<_> = found.rows.iter().map(|row| row.map(|value| found.values[value].as_str())).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn times_are_those_of_the_clock_in_their_zone() {
        // Noon in UTC, in winter and in summer.
        let noon = || TimestampSecondArray::from(vec![Some(1_704_110_400), None, Some(1_719_835_200)]);
        let in_zone = |zone: &str| noon().with_timezone(zone);
        check(&noon(), &[Some("2024-01-01T12:00:00"), None, Some("2024-07-01T12:00:00")]);
        check(&in_zone("America/New_York"), &[Some("2024-01-01T07:00:00-05:00"), None, Some("2024-07-01T08:00:00-04:00")]);
        check(&in_zone("+05:30"), &[Some("2024-01-01T17:30:00+05:30"), None, Some("2024-07-01T17:30:00+05:30")]);
        for utc in ["UTC", "no such zone"] {
            check(&in_zone(utc), &[Some("2024-01-01T12:00:00+00:00"), None, Some("2024-07-01T12:00:00+00:00")]);
        }
    }

    #[test]
    fn truth_values_are_written_as_in_pandas() {
        check(&BooleanArray::from(vec![Some(true), None, Some(false)]), &[Some("True"), None, Some("False")]);
    }
}
