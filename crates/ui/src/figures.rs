//! Figures as tables show them.

/// Three digits and a prefix: 12.3M.
pub fn scaled(value: f64) -> String {
    let (value, prefix) = match value {
        _ if value >= 999.5e6 => (value / 1e9, "G"),
        _ if value >= 999.5e3 => (value / 1e6, "M"),
        _ if value >= 999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    format!("{}{prefix}", three_digits(value))
}

/// A number of things: 12, and from 1000 on as [`scaled`].
pub fn count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => scaled(number as f64),
    }
}

/// Three digits and a unit: 1.23 us.
pub fn nanoseconds(ns: u64) -> String {
    let ns = ns as f64;
    let (value, unit) = match ns {
        _ if ns >= 999.5e6 => (ns / 1e9, "s"),
        _ if ns >= 999.5e3 => (ns / 1e6, "ms"),
        _ if ns >= 999.5 => (ns / 1e3, "us"),
        _ => return format!("{ns:.0} ns"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Three digits: 12.3.
pub fn three_digits(value: f64) -> String {
    let decimals = match value {
        _ if value >= 99.95 => 0,
        _ if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// A share in percent: 12 %.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A share of a number in percent, with a digit: 12.3 %. Few are not none: < 0.1 %.
pub fn share_of(n: u64, of: u64) -> String {
    match 100.0 * n as f64 / of.max(1) as f64 {
        share if n > 0 && share < 0.05 => "< 0.1 %".to_owned(),
        share => format!("{share:.1} %"),
    }
}

/// A number and its noun, in the plural unless the number is 1: 1 CPU, 2 CPUs.
pub fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A figure, or a dash where there is none.
pub fn or_dash(figure: Option<String>) -> String {
    figure.unwrap_or_else(|| "-".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{nanoseconds, scaled};

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(scaled(12_345_678.0), "12.3M");
        assert_eq!(scaled(999.7), "1.00k");
        assert_eq!(scaled(312.0), "312");
        assert_eq!(nanoseconds(45), "45 ns");
        assert_eq!(nanoseconds(1_500), "1.50 us");
        assert_eq!(nanoseconds(123_456_789), "123 ms");
    }
}
