//! Tests of judgements in cases made by hand: what a chain, a list, a single known value or a shared place is worth.

use webfill_truth::{Chosen, Claim, Evidence, FieldShape, Known, Presence, estimate};

/// A value of the only field, read from the page of a row.
fn claim_of_row(row: u32, value: u32) -> Claim {
    Claim {
        item: row,
        field: 0,
        value,
        page: row,
        site: 0,
        layout: 0,
        rule: 0,
        anchor: 0,
    }
}

/// Judges rows of one site with lists of two values. If `in_part` is true, the chain reads only one of the two values
/// on every second page.
fn judge_lists_of_two(in_part: bool) -> webfill_truth::Judgement {
    let (mut claims, mut known) = (Vec::new(), Vec::new());
    for row in 0..20 {
        let values = [row * 2, row * 2 + 1];
        let read = if in_part && row % 2 == 0 { 1 } else { 2 };
        claims.extend(values[..read].iter().map(|&value| claim_of_row(row, value)));
        if row < 10 {
            known.extend(values.iter().map(|&value| Known {
                item: row,
                value,
                held_out: true,
                presence: Presence::OnPage,
                chance: 0.0,
            }));
        }
    }
    estimate(&Evidence {
        fields: &[FieldShape::Several],
        claims: &claims,
        known: &known,
        texts: &[],
        chosen: &[],
    })
}

#[test]
fn a_list_is_uncertain_if_its_chain_reads_other_lists_in_part() {
    let whole = judge_lists_of_two(false).item(19).unwrap().confidence;
    let in_part = judge_lists_of_two(true).item(18).unwrap().confidence;
    assert!(whole >= 0.95, "{whole}");
    assert!(in_part < 0.8, "{in_part}");
}

/// Judges three rows of one site. Only the value of the first row is known, and the chain was chosen by this value.
fn judge_one_known(shape: FieldShape, agreement: f64) -> webfill_truth::Judgement {
    let claims: Vec<Claim> = (0..3)
        .map(|row| Claim {
            item: row,
            field: 0,
            value: row,
            page: row,
            site: 0,
            layout: 0,
            rule: 0,
            anchor: 0,
        })
        .collect();
    estimate(&Evidence {
        fields: &[shape],
        claims: &claims,
        known: &[Known {
            item: 0,
            value: 0,
            held_out: false,
            presence: Presence::OnPage,
            chance: 0.0,
        }],
        texts: &[],
        chosen: &[Chosen {
            layout: 0,
            field: 0,
            reads: 1,
            misses: 0,
            agreement,
            place: None,
        }],
    })
}

#[test]
fn one_known_value_suffices_if_another_anchor_agrees_on_all_pages() {
    // A chain is not confirmed if a second chain reads the same on only the share `most` of the pages. The share is
    // higher for lists: without one of its values, a list still agrees to a large part.
    for (shape, most) in [(FieldShape::Single, 0.2), (FieldShape::Several, 0.9)] {
        let agreed = judge_one_known(shape, 1.0);
        assert!(agreed.item(1).unwrap().confidence >= 0.95, "{shape:?}");
        assert!(agreed.decide_fill(0, 0, 0.95).fill, "{shape:?}");
        let alone = judge_one_known(shape, most);
        assert!(alone.item(1).unwrap().confidence < 0.95, "{shape:?}");
        assert!(!alone.decide_fill(0, 0, 0.95).fill, "{shape:?}");
    }
}

/// Judges ten rows of one site whose chain reads lists of four values. The records of the first rows have
/// `known_lists`.
fn judge_lists_of_four(known_lists: &[[u32; 4]]) -> webfill_truth::Judgement {
    let (mut claims, mut known) = (Vec::new(), Vec::new());
    for row in 0..10 {
        let values = [row * 4, row * 4 + 1, row * 4 + 2, row * 4 + 3];
        claims.extend(values.map(|value| Claim {
            item: row,
            field: 0,
            value,
            page: row,
            site: 0,
            layout: 0,
            rule: 0,
            anchor: 0,
        }));
        for &value in known_lists.get(row as usize).into_iter().flatten() {
            known.push(Known {
                item: row,
                value,
                held_out: true,
                presence: match values.contains(&value) {
                    true => Presence::OnPage,
                    false => Presence::Absent,
                },
                chance: 0.0,
            });
        }
    }
    estimate(&Evidence {
        fields: &[FieldShape::Several],
        claims: &claims,
        known: &known,
        texts: &[],
        chosen: &[],
    })
}

#[test]
fn confidence_of_a_list_depends_on_how_many_lists_its_chain_reads_correctly() {
    let lists = |rows: std::ops::Range<u32>| -> Vec<[u32; 4]> {
        rows.map(|row| [row * 4, row * 4 + 1, row * 4 + 2, row * 4 + 3])
            .collect()
    };
    let five = judge_lists_of_four(&lists(0..5));
    assert!(five.item(9).unwrap().confidence >= 0.95, "{five:?}");
    assert!(five.decide_fill(0, 0, 0.95).fill);
    // One known list is no more evidence than one value, although it has four values.
    let one = judge_lists_of_four(&lists(0..1));
    assert!(!one.decide_fill(0, 0, 0.95).fill);
}

#[test]
fn a_wrong_known_list_is_doubted_and_is_no_evidence_against_its_page() {
    let mut lists: Vec<[u32; 4]> = (0..5)
        .map(|row| [row * 4, row * 4 + 1, row * 4 + 2, row * 4 + 3])
        .collect();
    // One record has the list of another row, and another record has a list with one wrong value.
    lists[1] = [80, 81, 82, 83];
    lists[3][2] = 90;
    let judged = judge_lists_of_four(&lists);
    let doubted: Vec<u32> = judged
        .likely_errors()
        .iter()
        .map(|doubt| doubt.known)
        .collect();
    assert_eq!(doubted.len(), 5, "{doubted:?}");
    assert!(judged.item(9).unwrap().confidence >= 0.95);
    assert!(judged.decide_fill(0, 0, 0.95).fill);
}

/// Judges 40 rows of one site. Half of them have known values of four fields, a third of them wrong: these belong to rows
/// that have no page. The pages mention the share `chance` of all values of the last field, and also its wrong known
/// values. Wrong values of other fields are not on their pages.
fn judge_values_of_other_rows(chance: f32) -> webfill_truth::Judgement {
    let (mut claims, mut known) = (Vec::new(), Vec::new());
    for row in 0..40 {
        for field in 0..4 {
            let (item, value) = (row * 4 + field, row * 4 + field);
            claims.push(Claim {
                item,
                field,
                value,
                page: row,
                site: 0,
                layout: 0,
                rule: field,
                anchor: 0,
            });
            let is_wrong = (row + field) % 3 == 0;
            if row < 20 {
                known.push(Known {
                    item,
                    value: if is_wrong { value + 1_000 } else { value },
                    held_out: true,
                    presence: match is_wrong && field < 3 {
                        true => Presence::Absent,
                        false => Presence::OnPage,
                    },
                    chance: if field < 3 { 0.0 } else { chance },
                });
            }
        }
    }
    estimate(&Evidence {
        fields: &[FieldShape::Single; 4],
        claims: &claims,
        known: &known,
        texts: &[],
        chosen: &[],
    })
}

#[test]
fn a_value_found_on_a_page_is_weak_evidence_if_the_page_has_most_values() {
    let of_last = |judged: &webfill_truth::Judgement| {
        let doubted = judged.likely_errors().iter();
        doubted.filter(|doubt| doubt.field == 3).count()
    };
    let rare = judge_values_of_other_rows(0.0);
    assert!(!rare.decide_fill(0, 3, 0.95).fill);
    assert_eq!(of_last(&rare), 0);
    let usual = judge_values_of_other_rows(0.8);
    assert_eq!(of_last(&usual), 7);
    assert!(usual.decide_fill(0, 3, 0.95).fill, "{:?}", usual.precisions);
}

/// Judges 24 sites with three rows each; two rows of each site have a known value. On every second site, the chain
/// reads something else than the field.
fn judge_shared_places(place: Option<u32>) -> webfill_truth::Judgement {
    let (mut claims, mut known, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
    for site in 0..24 {
        let is_right = site % 2 == 0;
        for row in 0..3 {
            let item = site * 3 + row;
            claims.push(Claim {
                item,
                field: 0,
                value: item,
                page: item,
                site,
                layout: site,
                rule: site,
                anchor: 0,
            });
            if row < 2 {
                known.push(Known {
                    item,
                    value: if is_right { item } else { 1_000 + item },
                    held_out: true,
                    presence: Presence::OnPage,
                    chance: 0.0,
                });
            }
        }
        chosen.push(Chosen {
            layout: site,
            field: 0,
            reads: 2,
            misses: 0,
            agreement: 0.0,
            place: place.filter(|_| is_right),
        });
    }
    estimate(&Evidence {
        fields: &[FieldShape::Single],
        claims: &claims,
        known: &known,
        texts: &[],
        chosen: &chosen,
    })
}

#[test]
fn sites_with_a_field_in_the_same_place_confirm_each_other() {
    assert!(!judge_shared_places(None).decide_fill(0, 0, 0.95).fill);
    let same = judge_shared_places(Some(7));
    assert!(
        same.decide_fill(0, 0, 0.95).fill,
        "{:?}",
        same.precisions[0]
    );
    assert!(!same.decide_fill(1, 0, 0.95).fill);
}

/// Judges 12 sites with four rows and four fields each. Three values of each field are known, held out and read
/// correctly. The last field of the first site has only one known value, and its chain was chosen by that value.
fn judge_one_known_among_good_ones(place: Option<u32>) -> webfill_truth::Judgement {
    let (mut claims, mut known, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
    for site in 0..12 {
        for field in 0..4 {
            let is_first = site == 0 && field == 3;
            for row in 0..4 {
                let item = (site * 4 + row) * 4 + field;
                claims.push(Claim {
                    item,
                    field,
                    value: item,
                    page: item / 4,
                    site,
                    layout: site,
                    rule: site * 4 + field,
                    anchor: 0,
                });
                if row < if is_first { 1 } else { 3 } {
                    known.push(Known {
                        item,
                        value: item,
                        held_out: !is_first,
                        presence: Presence::OnPage,
                        chance: 0.0,
                    });
                }
            }
            chosen.push(Chosen {
                layout: site,
                field,
                reads: if is_first { 1 } else { 3 },
                misses: 0,
                agreement: 0.0,
                place,
            });
        }
    }
    estimate(&Evidence {
        fields: &[FieldShape::Single; 4],
        claims: &claims,
        known: &known,
        texts: &[],
        chosen: &chosen,
    })
}

#[test]
fn good_fields_do_not_confirm_a_chain_that_was_chosen_by_one_value() {
    let alone = judge_one_known_among_good_ones(None);
    assert!(alone.decide_fill(0, 2, 0.95).fill);
    assert!(alone.decide_fill(1, 3, 0.95).fill);
    let decision = alone.decide_fill(0, 3, 0.95);
    assert!(!decision.fill, "{decision:?}");
    assert!(alone.item(7).unwrap().confidence < 0.95);
    // If chains of other sites read the same place, the known values of those sites confirm the chain.
    let shared = judge_one_known_among_good_ones(Some(1));
    let decision = shared.decide_fill(0, 3, 0.95);
    assert!(decision.fill, "{decision:?}");
}

/// Judges four sites with 250 rows and four fields each. 30 % of the known values are wrong. The last field has 13
/// possible values, and each page mentions three in ten of them in another context.
#[test]
fn many_wrong_values_of_a_field_are_distinguished_from_a_wrong_chain() {
    const CHANCE: f32 = 0.3;
    let mut dice = fastrand::Rng::with_seed(1);
    let (mut claims, mut known, mut wrong_of_last) = (Vec::new(), Vec::new(), 0);
    for page in 0..1_000 {
        for field in 0..4 {
            let item = page * 4 + field;
            let is_last = field == 3;
            let value = if is_last { dice.u32(..13) } else { 100 + item };
            claims.push(Claim {
                item,
                field,
                value,
                page,
                site: page / 250,
                layout: page / 250,
                rule: page / 250 * 4 + field,
                anchor: 0,
            });
            if dice.bool() {
                continue;
            }
            let is_wrong = dice.f64() < 0.3;
            let stands = !is_wrong || is_last && dice.f32() < CHANCE;
            wrong_of_last += usize::from(is_wrong && is_last);
            known.push(Known {
                item,
                value: match (is_wrong, is_last) {
                    (false, _) => value,
                    (true, true) => (value + dice.u32(1..13)) % 13,
                    (true, false) => value + 10_000,
                },
                held_out: true,
                presence: if stands {
                    Presence::OnPage
                } else {
                    Presence::Absent
                },
                chance: if is_wrong && is_last { CHANCE } else { 0.0 },
            });
        }
    }
    let judged = estimate(&Evidence {
        fields: &[FieldShape::Single; 4],
        claims: &claims,
        known: &known,
        texts: &[],
        chosen: &[],
    });
    for site in 0..4 {
        let decision = judged.decide_fill(site, 3, 0.95);
        assert!(decision.fill, "{decision:?}");
    }
    let doubted = judged.likely_errors().iter();
    let doubted = doubted.filter(|doubt| doubt.field == 3).count();
    assert_eq!(doubted, wrong_of_last);
}

/// Judges ten rows of one site. Six values are known, and the sixth page has another value than its row. The known value
/// is on that page, too. Returns how surely the record is wrong.
fn judge_value_on_page(values: [u32; 10], known_of_sixth: u32) -> f64 {
    let claims = (0..10).zip(values);
    let claims = claims.map(|(row, value)| claim_of_row(row, value));
    let known = (0..6).map(|row| Known {
        item: row,
        value: if row == 5 {
            known_of_sixth
        } else {
            values[row as usize]
        },
        held_out: true,
        presence: Presence::OnPage,
        chance: 0.0,
    });
    let judged = estimate(&Evidence {
        fields: &[FieldShape::Single],
        claims: &claims.collect::<Vec<_>>(),
        known: &known.collect::<Vec<_>>(),
        texts: &[],
        chosen: &[],
    });
    judged.doubts.first().map_or(0.0, |doubt| doubt.surely)
}

#[test]
fn a_value_of_another_row_is_doubted_if_values_seldom_occur_twice() {
    let names = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let of_another_row = judge_value_on_page(names, 0);
    assert!(of_another_row > 0.5, "{of_another_row}");
    let of_no_row = judge_value_on_page(names, 20);
    assert!(of_no_row < 0.5, "{of_no_row}");
    let makers = [0, 1, 0, 2, 1, 1, 0, 2, 1, 0];
    let of_many_rows = judge_value_on_page(makers, 0);
    assert!(of_many_rows < 0.5, "{of_many_rows}");
}
