//! The values of one column of a batch.

use arrow_array::cast::AsArray;
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

/// The values as `f64`, exact except for integers beyond 2⁵³ and decimals, which are rounded; `None` for a missing value.
pub(super) fn numbers(array: &dyn Array) -> Vec<Option<f64>> {
    fn of<T: ArrowPrimitiveType>(array: &dyn Array, to: impl Fn(T::Native) -> f64) -> Vec<Option<f64>> {
        array.as_primitive::<T>().iter().map(|value| value.map(&to)).collect()
    }
    fn decimals<T: DecimalType>(array: &dyn Array) -> Vec<Option<f64>> {
        let decimals: &PrimitiveArray<T> = array.as_primitive::<T>();
        let number = |row| decimals.is_valid(row).then(|| decimals.value_as_string(row).parse().unwrap_or(f64::NAN));
        (0..decimals.len()).map(number).collect()
    }
    match array.data_type() {
        DataType::Null => vec![None; array.len()],
        DataType::Boolean => array.as_boolean().iter().map(|value| value.map(|truth| f64::from(u8::from(truth)))).collect(),
        DataType::Float16 => of::<Float16Type>(array, |value| value.to_f64()),
        DataType::Float32 => of::<Float32Type>(array, f64::from),
        DataType::Float64 => of::<Float64Type>(array, |value| value),
        DataType::Decimal32(..) => decimals::<Decimal32Type>(array),
        DataType::Decimal64(..) => decimals::<Decimal64Type>(array),
        DataType::Decimal128(..) => decimals::<Decimal128Type>(array),
        DataType::Decimal256(..) => decimals::<Decimal256Type>(array),
        DataType::Dictionary(..) => {
            let (values, keys) = dictionary(array);
            let values = numbers(values);
            keys.into_iter().map(|key| key.and_then(|key| values[key])).collect()
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
        DataType::Boolean => each(array.as_boolean().iter().map(|value| value.map(|truth| truth.to_string()))),
        DataType::Date32 => each(times::<Date32Type>(array, "%Y-%m-%d")),
        DataType::Date64 => each(times::<Date64Type>(array, "%Y-%m-%d")),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => each(times::<TimestampSecondType>(array, TIME)),
            TimeUnit::Millisecond => each(times::<TimestampMillisecondType>(array, TIME)),
            TimeUnit::Microsecond => each(times::<TimestampMicrosecondType>(array, TIME)),
            TimeUnit::Nanosecond => each(times::<TimestampNanosecondType>(array, TIME)),
        },
        DataType::Dictionary(..) => {
            let (values, keys) = dictionary(array);
            let of_values = texts(values);
            let rows = keys.into_iter().map(|key| key.and_then(|key| of_values.rows[key])).collect();
            Texts { values: of_values.values, rows }
        }
        dtype => {
            for_integer!(dtype, T => each(array.as_primitive::<T>().iter().map(|value| value.map(|value| value.to_string()))),
            each(numbers(array).into_iter().map(|value| value.map(|value| value.to_string()))))
        }
    }
}

/// A time as text, with as many digits of a second as it has.
const TIME: &str = "%Y-%m-%dT%H:%M:%S%.f";

/// Dates and times as text, in UTC; beyond the years that can be written they are missing.
fn times<T: ArrowTemporalType>(array: &dyn Array, format: &'static str) -> impl Iterator<Item = Option<String>>
where
    i64: From<T::Native>,
{
    let array = array.as_primitive::<T>();
    (0..array.len()).map(move |row| {
        let time = array.is_valid(row).then(|| array.value_as_datetime(row)).flatten();
        time.map(|time| time.format(format).to_string())
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
