//! How many digits behind the point an amount in a currency has: the minor units of ISO 4217, list one.
//! Pure; relies on nothing.
//! Promises no limit for a code that the list does not have: a service may use one of its own.

/// Codes of ISO 4217 list one by their minor unit: the decimal digits of an amount.
const MINOR_UNITS: [(u32, &str); 4] = [
    (
        0,
        "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    ),
    (
        2,
        "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF \
         CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF \
         IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN \
         MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS \
         SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG",
    ),
    (3, "BHD IQD JOD KWD LYD OMR TND"),
    (4, "CLF UYW"),
];

/// The digits behind the point; `None` for a code that ISO 4217 does not have, or gives no minor unit.
pub(super) fn minor_unit(code: &str) -> Option<u32> {
    let mut units = MINOR_UNITS.iter();
    let found = units.find(|(_, codes)| codes.split(' ').any(|one| one == code));
    found.map(|(digits, _)| *digits)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_code_has_one_minor_unit() {
        for (code, wanted) in [
            ("RUB", Some(2)),
            ("AED", Some(2)),
            ("ZWG", Some(2)),
            ("CHW", Some(2)),
            ("JPY", Some(0)),
            ("KWD", Some(3)),
            ("CLF", Some(4)),
            ("XAU", None),
            ("BTC", None),
            ("rub", None),
            ("", None),
        ] {
            assert_eq!(minor_unit(code), wanted, "{code}");
        }
        let codes: Vec<&str> = MINOR_UNITS
            .iter()
            .flat_map(|(_, codes)| codes.split(' '))
            .collect();
        assert!(codes.iter().all(|code| code.len() == 3), "{codes:?}");
        assert_eq!(codes.iter().collect::<BTreeSet<_>>().len(), codes.len());
    }
}
