//! Dictionaries that are built while rows are read: each chunk encodes its own values, and the thread that takes the chunks in
//! order assigns the codes of the table. So the codes do not depend on the timing of threads.

use std::collections::HashMap;

use crate::dictionary::{Dictionary, other_spellings};
use crate::error::Error;
use crate::format::MAX_HEADER_BYTES;

/// The values of one column, of a chunk or of the table, in the order of their first occurrence.
#[derive(Debug, Default)]
pub(crate) struct LocalValues {
    values: Vec<String>,
    codes: HashMap<String, u32>,
}

impl LocalValues {
    /// The index of the value among these, counted from 1.
    pub(crate) fn code(&mut self, value: &str) -> u32 {
        if let Some(&code) = self.codes.get(value) {
            return code;
        }
        self.values.push(value.to_owned());
        let code = u32::try_from(self.values.len()).expect("there are fewer values than a header has bytes");
        self.codes.insert(value.to_owned(), code);
        code
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.codes.clear();
    }
}

/// The values of one column of the table.
#[derive(Debug)]
pub(crate) struct GrowingDictionary {
    pub(crate) name: String,
    known: LocalValues,
    n_bytes: u64,
    growth: Growth,
    pub(crate) unseen: Unseen,
}

/// The cells whose values a complete dictionary does not have.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    pub(crate) n_values: u64,
    /// The first of the values.
    pub(crate) example: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// A new value gets the next code.
    Open,
    /// A new value is unknown: code 0.
    Closed,
}

impl GrowingDictionary {
    pub(crate) fn new(name: &str) -> Self {
        Self::with_values(name, Vec::new(), Growth::Open)
    }

    /// A complete dictionary, to which no values are added.
    pub(crate) fn closed(dictionary: &Dictionary) -> Self {
        Self::with_values(dictionary.name(), dictionary.values().to_vec(), Growth::Closed)
    }

    fn with_values(name: &str, values: Vec<String>, growth: Growth) -> Self {
        let codes = (1..).zip(&values).map(|(code, value)| (value.clone(), code)).collect();
        Self { name: name.to_owned(), known: LocalValues { values, codes }, n_bytes: 0, growth, unseen: Unseen::default() }
    }

    /// Converts the codes of a chunk, of these values, to those of the table; 0 stays 0.
    pub(crate) fn recode<'a>(
        &mut self,
        codes: impl Iterator<Item = &'a mut u32>,
        local: &LocalValues,
        path: &std::path::Path,
    ) -> Result<(), Error> {
        let of_table: Vec<u32> = local.values.iter().map(|value| self.code(value)).collect();
        if self.n_bytes > MAX_HEADER_BYTES {
            let (column, n_values) = (self.name.clone(), self.known.values.len());
            let header_bytes = self.n_bytes;
            return Err(Error::TooManyValues { path: path.to_owned(), column, n_values, header_bytes, limit: MAX_HEADER_BYTES });
        }
        for code in codes.filter(|code| **code != 0) {
            let value = *code as usize - 1;
            *code = of_table[value];
            if *code == 0 {
                self.unseen.n_values += 1;
                self.unseen.example.get_or_insert_with(|| local.values[value].clone());
            }
        }
        Ok(())
    }

    pub(crate) fn into_dictionary(self) -> Result<Dictionary, Error> {
        Dictionary::new(self.name, self.known.values)
    }

    /// The values, sorted as classes are, and for each code the index of its value among them.
    pub(crate) fn into_classes(self) -> (Vec<String>, Vec<u32>) {
        let values = &self.known.values;
        let mut order: Vec<usize> = (0..values.len()).collect();
        let numbers: Option<Vec<i128>> = values.iter().map(|value| value.parse().ok()).collect();
        // Different spellings stay separate: `1` and `01` are different values.
        match numbers {
            Some(numbers) => order.sort_by(|&a, &b| (numbers[a], &values[a]).cmp(&(numbers[b], &values[b]))),
            None => order.sort_by(|&a, &b| values[a].cmp(&values[b])),
        }
        let mut places = vec![0; values.len() + 1];
        for (place, &value) in (0..).zip(&order) {
            places[value + 1] = place;
        }
        (order.iter().map(|&value| values[value].clone()).collect(), places)
    }

    fn code(&mut self, value: &str) -> u32 {
        let codes = &self.known.codes;
        if self.growth == Growth::Closed {
            let known = codes.get(value).or_else(|| other_spellings(value).find_map(|other| codes.get(&*other)));
            return known.copied().unwrap_or(0);
        }
        let n_before = self.known.values.len();
        let code = self.known.code(value);
        if self.known.values.len() > n_before {
            self.n_bytes += value.len() as u64 + 3;
        }
        code
    }
}
