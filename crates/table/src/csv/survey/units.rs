/// The fewest different cells with which a column may be one of numbers with units.
const MIN_CELLS: usize = 4;

/// The most different units that such a column has.
const MAX_UNITS: usize = 3;

/// Cells that are numbers with a unit: `5 km`, `3.2kg`.
#[derive(Clone, Debug, Default)]
pub(super) struct Units {
    /// How many there are.
    pub(super) n: u64,
    /// The first different ones, and their units, as far as they matter.
    cells: Vec<String>,
    units: Vec<String>,
}

impl Units {
    /// Adds a cell that occurs `n` times, if it is such a number.
    pub(super) fn add(&mut self, text: &str, n: u64) {
        let Some(unit) = unit(text) else { return };
        self.n += n;
        note(&mut self.cells, text, MIN_CELLS);
        note(&mut self.units, unit, MAX_UNITS + 1);
    }

    pub(super) fn merge(&mut self, later: &Self) {
        self.n += later.n;
        later.cells.iter().for_each(|cell| note(&mut self.cells, cell, MIN_CELLS));
        later.units.iter().for_each(|unit| note(&mut self.units, unit, MAX_UNITS + 1));
    }

    /// The first cell, if there are several, with few units.
    pub(super) fn example(&self) -> Option<&str> {
        self.cells.first().filter(|_| self.cells.len() >= MIN_CELLS && self.units.len() <= MAX_UNITS).map(String::as_str)
    }
}

/// Adds a text, unless it is there or there are `most`.
fn note(texts: &mut Vec<String>, text: &str, most: usize) {
    if texts.len() < most && !texts.iter().any(|other| other == text) {
        texts.push(text.to_owned());
    }
}

/// The unit after a number.
fn unit(text: &str) -> Option<&str> {
    const LONGEST: usize = 12;
    let text = text.trim();
    let unsigned = text.trim_start_matches(['-', '+', '\u{2212}']);
    let rest = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
    let (digits, unit) = (&unsigned[..unsigned.len() - rest.len()], rest.trim_start());
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit()) && digits.replace(',', ".").parse::<f64>().is_ok();
    let starts = unit.starts_with(|c: char| c.is_alphabetic() || matches!(c, '\u{b0}' | '"'));
    let is_of_unit =
        |c: char| c.is_alphabetic() || matches!(c, '\u{b0}' | '"' | '/' | '^' | '2' | '3' | '\u{b2}' | '\u{b3}' | '.');
    (is_number && starts && unit.len() <= LONGEST && unit.chars().all(is_of_unit)).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::unit;

    #[test]
    fn numbers_with_units_are_told_from_other_text() {
        for (text, expected) in
            [("5 km", "km"), ("3.2kg", "kg"), ("-4 \u{b0}C", "\u{b0}C"), ("12,5 m2", "m2"), ("90 km/h", "km/h"), ("27\"", "\"")]
        {
            assert_eq!(unit(text), Some(expected), "{text}");
        }
        for text in ["km", "5", "0x10", "12-13", "1/2", "192.168.0.1", "5 km to go", "A12", "2024-01-31", "12A4", ".kg"] {
            assert_eq!(unit(text), None, "{text}");
        }
    }
}
