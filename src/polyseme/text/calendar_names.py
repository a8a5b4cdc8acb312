"""Names of months and weekdays, in the order of the calendar."""

MONTHS = {
    "english": "january february march april may june july august september october november december",
    "german": "januar februar märz april mai juni juli august september oktober november dezember",
    "french": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "italian": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "spanish": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "portuguese": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "dutch": "januari februari maart april mei juni juli augustus september oktober november december",
    "swedish": "januari februari mars april maj juni juli augusti september oktober november december",
    "danish": "januar februar marts april maj juni juli august september oktober november december",
    "norwegian": "januar februar mars april mai juni juli august september oktober november desember",
}
WEEKDAYS = {
    "english": "monday tuesday wednesday thursday friday saturday sunday",
    "german": "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag",
    "french": "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "italian": "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "spanish": "lunes martes miércoles jueves viernes sábado domingo",
    "portuguese": "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
    "dutch": "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
    "swedish": "måndag tisdag onsdag torsdag fredag lördag söndag",
    "danish": "mandag tirsdag onsdag torsdag fredag lørdag søndag",
    "norwegian": "mandag tirsdag onsdag torsdag fredag lørdag søndag",
}
