//! Enters every state of the HTML standard, ends the page within it, and leaves it with every character that has a
//! meaning in any state.

use super::super::compare::assert_tokenizers_agree;

const PAGES: [&str; 34] = [
    "text &amp; &lt &notit; &#65; &#x41 &#x; &bogus; <p>",
    "<p><a HREF='x&amp;y&copy=z&copy;' title=\"a&ampb\" bare=v&lt;w empty= = a=1 A=2/>t</a\n></p >",
    "</ p></p/></p x='y'/></></\0><?xml version='1.0'?><!x></p",
    "<br/><br / ><br//x=/y/><img src=/a/b/>",
    "<!-- a - b -- c --! d --!- e --!> f --><!--><!---><!----><!-----><!--!--><!--x--!>y",
    "<!--a<!b--><!--a<!-b--><!--a<!--b--><!--<!--><!--<!--!>--><!---!><!----!><!--<-->",
    "<!DOCTYPE html>",
    "<!doctypeHTML  >x<!DocType\0X>",
    "<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \"http://www.w3.org/TR/html4/strict.dtd\">",
    "<!DOCTYPE html public'a'  'b' c>x",
    "<!DOCTYPE html PUBLIC\"\"\"\" >x",
    "<!DOCTYPE html SYSTEM \"about:legacy-compat\" x >y",
    "<!DOCTYPE html system'a>b'>",
    "<!DOCTYPE html PUBLIC x>y",
    "<!DOCTYPE html bogus\0>y",
    "<title>a&amp;b</titles></title x></title>c",
    "<textarea>\n</textarea/x></textarea\n>",
    "<style>a&amp;b<!--</style>c--></STYLE>",
    "<xmp></x></xmp></xmp>",
    "<script>a<b</scripts></script >c</script>",
    "<script><!--a-b--c<d-->e</script>f",
    "<script><!-- <script> </script> --></script>x",
    "<script><!--<script/</script/<x</script>-</script>--></script>",
    "<script><!--><!-- <scriptx> <SCRIPT\n--></script>x",
    "<script><!--<script>--<x--></script>x",
    "<script><!-<!--->--></script",
    "<plaintext>a&amp;b</plaintext>",
    "<svg><![CDATA[a&amp;<b>]]c]]]>d]]></svg><![CDATA[e]]>",
    "<math><mi><![CDATA[x]]></mi><annotation-xml><![CDATA[y]]></math>",
    "<svg><desc><![CDATA[x]]></desc><title>a</title><script>b</script></svg>",
    "<pre>\n\nx</pre><listing>\r\nx</listing>",
    "<table>a<tr>b<td>c</table>",
    "<frameset> x <frame></frameset> y <noframes>z</noframes>",
    "<svg><a\0 b\0=\0'\0>\0</a></svg><select><option>x",
];

const NEXT: [&str; 26] = [
    "", " ", "\t", "\n", "\x0c", "\r", "\r\n", "\0", "<", ">", "/", "-", "--", "!", "\"", "'", "=",
    "&", ";", "#", "a", "S", "?", "[", "]", "ü",
];

const REST: [&str; 2] = ["", "x>y' \">]]>--></script></title><p z>&amp;"];

#[test]
fn every_state_is_left_as_html5ever_leaves_it() {
    for page in PAGES {
        for cut in (0..=page.len()).filter(|cut| page.is_char_boundary(*cut)) {
            for next in NEXT {
                for rest in REST {
                    assert_tokenizers_agree(&format!("{}{next}{rest}", &page[..cut]));
                }
                assert_tokenizers_agree(&format!("{}{next}{}", &page[..cut], &page[cut..]));
            }
        }
    }
}

#[test]
fn only_the_first_byte_order_mark_is_dropped() {
    assert_tokenizers_agree("\u{feff}<p>\u{feff}x</p><script></script>\u{feff}y");
    assert_tokenizers_agree("\u{feff}\u{feff}<p>x");
    let page = format!("<p>{}\u{feff}x", "y".repeat(40_000));
    assert_tokenizers_agree(&page);
}
