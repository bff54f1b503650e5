//! The verticals that measurements use.

use super::kinds::Kind::{
    Address, Day, Duration, Height, Isbn, Money, Name, Number, OneOf, Person, Phone, SomeOf,
    Website,
};
use super::kinds::{Vertical, part};
use super::words::{
    BRANDS, CODES, CUISINES, FIRMS, GENRES, HOUSES, JOBS, MANNERS, MODELS, NOUNS, PLACES, RANKS,
    SAINTS, TEAMS,
};

/// The verticals that measurements use.
pub const MEASURED: &[Vertical] = &[
    Vertical {
        name: "book",
        schema: "Book",
        fields: &[
            part(
                "title",
                &["Title", "Book", "Name", "Book Title"],
                "name",
                Name(MANNERS, NOUNS),
            ),
            part(
                "author",
                &["Author", "Written by", "By", "Author(s)", "Writer"],
                "author",
                Person,
            ),
            part(
                "isbn_13",
                &["ISBN-13", "ISBN13", "ISBN", "EAN", "ISBN 13"],
                "isbn",
                Isbn,
            ),
            part(
                "publisher",
                &["Publisher", "Published by", "Imprint", "Publishing house"],
                "publisher",
                OneOf(HOUSES),
            ),
            part(
                "publication_date",
                &[
                    "Publication date",
                    "Pub. Date",
                    "Published",
                    "Release date",
                    "Date",
                ],
                "datePublished",
                Day,
            ),
        ],
        beside: &[
            part(
                "",
                &["Pages", "Page count", "Length"],
                "numberOfPages",
                Number(90, 900, ""),
            ),
            part(
                "",
                &["Illustrator", "Editor", "Narrator", "Translator"],
                "illustrator",
                Person,
            ),
            part(
                "",
                &["Price", "Our price", "Sale price"],
                "price",
                Money(499, 4_999),
            ),
            part("", &["List price", "RRP"], "", Money(999, 5_999)),
            part(
                "",
                &["Available since", "Added", "Last updated"],
                "dateModified",
                Day,
            ),
            part(
                "",
                &["Distributor", "Series publisher", "Sold by"],
                "seller",
                OneOf(HOUSES),
            ),
            part(
                "",
                &["Format", "Binding"],
                "bookFormat",
                OneOf(&["Hardcover", "Paperback", "Audio CD", "Library binding"]),
            ),
            part("", &["Barcode", "Item EAN (box)"], "", Isbn),
        ],
    },
    Vertical {
        name: "camera",
        schema: "Product",
        fields: &[
            part(
                "model",
                &["Model", "Product", "Name", "Item"],
                "name",
                Name(MODELS, CODES),
            ),
            part(
                "price",
                &[
                    "Price",
                    "Our Price",
                    "Sale Price",
                    "Today's price",
                    "You pay",
                ],
                "price",
                Money(4_999, 99_999),
            ),
            part(
                "manufacturer",
                &["Manufacturer", "Brand", "Maker", "Brand name", "Mfr."],
                "brand",
                OneOf(BRANDS),
            ),
        ],
        beside: &[
            part(
                "",
                &["List Price", "Was", "Retail", "MSRP"],
                "",
                Money(5_999, 129_999),
            ),
            part(
                "",
                &["You save", "Savings", "Rebate"],
                "",
                Money(500, 9_999),
            ),
            part(
                "",
                &["Shipping", "Delivery", "Freight"],
                "",
                Money(299, 2_999),
            ),
            part(
                "",
                &["Weight", "Item weight", "Shipping weight"],
                "weight",
                Number(90, 900, " g"),
            ),
            part(
                "",
                &["Resolution", "Megapixels", "Sensor"],
                "",
                Number(5, 21, " MP"),
            ),
            part(
                "",
                &["Lens maker", "Battery maker", "Compatible with"],
                "",
                OneOf(BRANDS),
            ),
            part(
                "",
                &["Colour", "Color", "Finish"],
                "color",
                OneOf(&["Black", "Silver", "Red", "Blue", "White"]),
            ),
            part("", &["First available", "Added", "Launched"], "", Day),
        ],
    },
    Vertical {
        name: "job",
        schema: "JobPosting",
        fields: &[
            part(
                "title",
                &["Job title", "Position", "Role", "Title"],
                "title",
                Name(RANKS, JOBS),
            ),
            part(
                "company",
                &["Company", "Employer", "Organization", "Hiring company"],
                "hiringOrganization",
                OneOf(FIRMS),
            ),
            part(
                "location",
                &["Location", "City", "Where", "Work location", "Job location"],
                "jobLocation",
                OneOf(PLACES),
            ),
            part(
                "date_posted",
                &["Posted", "Date posted", "Posted on", "Listed", "Post date"],
                "datePosted",
                Day,
            ),
        ],
        beside: &[
            part(
                "",
                &["Closing date", "Apply by", "Deadline"],
                "validThrough",
                Day,
            ),
            part("", &["Start date", "Begins", "Starting"], "", Day),
            part(
                "",
                &["Salary", "Pay", "Compensation"],
                "baseSalary",
                Money(2_500_000, 9_900_000),
            ),
            part(
                "",
                &["Recruiter", "Agency", "Parent company"],
                "",
                OneOf(FIRMS),
            ),
            part("", &["Contact", "Hiring manager"], "", Person),
            part(
                "",
                &["Head office", "Interviews in", "Headquarters"],
                "",
                OneOf(PLACES),
            ),
            part(
                "",
                &["Type", "Job type", "Employment"],
                "employmentType",
                OneOf(&["Full time", "Part time", "Contract", "Temporary"]),
            ),
            part(
                "",
                &["Reference", "Job ID", "Req. number"],
                "",
                Number(10_000, 99_999, ""),
            ),
        ],
    },
    Vertical {
        name: "movie",
        schema: "Movie",
        fields: &[
            part(
                "title",
                &["Title", "Film", "Movie", "Name"],
                "name",
                Name(MANNERS, NOUNS),
            ),
            part(
                "director",
                &["Director", "Directed by", "Directors", "Direction"],
                "director",
                Person,
            ),
            part(
                "genre",
                &["Genre", "Genres", "Category", "Kind of film"],
                "genre",
                SomeOf(GENRES),
            ),
            part(
                "mpaa_rating",
                &["MPAA rating", "Rated", "Rating", "Certificate"],
                "contentRating",
                OneOf(&["G", "PG", "PG-13", "R", "NC-17"]),
            ),
        ],
        beside: &[
            part(
                "",
                &["Writer", "Screenplay", "Written by"],
                "author",
                Person,
            ),
            part(
                "",
                &["Producer", "Produced by", "Cinematography"],
                "producer",
                Person,
            ),
            part(
                "",
                &["Runtime", "Running time", "Length"],
                "duration",
                Duration,
            ),
            part(
                "",
                &["Release date", "Opened", "In theaters"],
                "datePublished",
                Day,
            ),
            part("", &["DVD", "On DVD", "Home release"], "", Day),
            part(
                "",
                &["Box office", "Gross", "Budget"],
                "",
                Money(100_000_000, 900_000_000),
            ),
            part(
                "",
                &["Critics", "Score", "User score"],
                "ratingValue",
                Number(20, 99, ""),
            ),
        ],
    },
    Vertical {
        name: "player",
        schema: "Person",
        fields: &[
            part(
                "name",
                &["Name", "Player", "Full name", "Athlete"],
                "name",
                Person,
            ),
            part(
                "team",
                &["Team", "Club", "Current team", "Plays for"],
                "affiliation",
                OneOf(TEAMS),
            ),
            part(
                "height",
                &["Height", "Ht", "Height (ft)", "Size"],
                "height",
                Height,
            ),
            part(
                "weight",
                &["Weight", "Wt", "Weight (lb)", "Mass"],
                "weight",
                Number(165, 290, " lbs"),
            ),
        ],
        beside: &[
            part("", &["Born", "Date of birth", "Birthday"], "birthDate", Day),
            part(
                "",
                &["Former team", "Drafted by", "Next opponent"],
                "",
                OneOf(TEAMS),
            ),
            part("", &["Coach", "Agent", "Head coach"], "", Person),
            part("", &["Wingspan", "Reach", "Vertical"], "", Height),
            part(
                "",
                &["Points", "Career points", "Total"],
                "",
                Number(100, 20_000, ""),
            ),
            part(
                "",
                &["Bench press", "College weight", "Max. squat"],
                "",
                Number(165, 390, " lbs"),
            ),
            part(
                "",
                &["Position", "Pos.", "Plays"],
                "",
                OneOf(&["Guard", "Forward", "Center"]),
            ),
        ],
    },
    Vertical {
        name: "restaurant",
        schema: "Restaurant",
        fields: &[
            part(
                "name",
                &["Name", "Restaurant", "Venue"],
                "name",
                Name(
                    SAINTS,
                    &[
                        "Grill",
                        "Bistro",
                        "Kitchen",
                        "Diner",
                        "Tavern",
                        "Cantina",
                        "Brasserie",
                        "Table",
                        "Oven",
                    ],
                ),
            ),
            part(
                "address",
                &["Address", "Street address", "Where", "Find us"],
                "streetAddress",
                Address,
            ),
            part(
                "phone",
                &["Phone", "Telephone", "Call", "Tel.", "Phone number"],
                "telephone",
                Phone,
            ),
            part(
                "cuisine",
                &["Cuisine", "Food", "Cuisines", "Style of food"],
                "servesCuisine",
                OneOf(CUISINES),
            ),
        ],
        beside: &[
            part(
                "",
                &["Fax", "Fax number", "Catering line"],
                "faxNumber",
                Phone,
            ),
            part(
                "",
                &["Parking at", "Sister restaurant at", "Mailing address"],
                "",
                Address,
            ),
            part(
                "",
                &["Average price", "Entrees from", "Dinner from"],
                "priceRange",
                Money(900, 5_900),
            ),
            part("", &["Opened", "Reviewed on", "Updated"], "", Day),
            part("", &["Chef", "Owner", "Reviewer"], "founder", Person),
            part(
                "",
                &["Nearby", "Similar", "Also in the area"],
                "",
                OneOf(CUISINES),
            ),
            part(
                "",
                &["Seats", "Capacity", "Tables"],
                "",
                Number(20, 220, ""),
            ),
        ],
    },
    Vertical {
        name: "university",
        schema: "CollegeOrUniversity",
        fields: &[
            part(
                "name",
                &["Name", "School", "Institution", "University"],
                "name",
                Name(
                    SAINTS,
                    &[
                        "University",
                        "College",
                        "Institute",
                        "State University",
                        "Polytechnic",
                        "Seminary",
                    ],
                ),
            ),
            part(
                "phone",
                &[
                    "Phone",
                    "Telephone",
                    "Main number",
                    "General information",
                    "Tel",
                ],
                "telephone",
                Phone,
            ),
            part(
                "website",
                &["Website", "Web site", "URL", "Homepage", "On the web"],
                "url",
                Website,
            ),
            part(
                "type",
                &["Type", "School type", "Control", "Institution type"],
                "",
                OneOf(&[
                    "Public",
                    "Private",
                    "Private for-profit",
                    "Religious",
                    "Federal",
                ]),
            ),
        ],
        beside: &[
            part(
                "",
                &["Admissions office", "Financial aid", "Fax"],
                "faxNumber",
                Phone,
            ),
            part(
                "",
                &["Tuition", "In-state tuition", "Room and board"],
                "",
                Money(500_000, 4_500_000),
            ),
            part(
                "",
                &["Students", "Enrollment", "Undergraduates"],
                "",
                Number(800, 40_000, ""),
            ),
            part(
                "",
                &["Net price calculator", "Athletics site", "Apply at"],
                "",
                Website,
            ),
            part("", &["President", "Dean", "Contact"], "", Person),
            part(
                "",
                &["Setting", "Campus", "Surroundings"],
                "",
                OneOf(&["Urban", "Rural", "Suburban", "Town"]),
            ),
            part("", &["Deadline", "Apply by", "Founded"], "", Day),
        ],
    },
];
