import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Publishes one numeric column of a CSV as intervals: GeneraliseAges --in IN --out OUT --column age --width 10. */
public class GeneraliseAges {
    public static void main(String[] arguments) throws IOException {
        Path in = Path.of(option(arguments, "--in"));
        Path out = Path.of(option(arguments, "--out"));
        int width = Integer.parseInt(option(arguments, "--width"));
        List<String> published = new ArrayList<>();
        int column = -1;
        for (String line : Files.readAllLines(in)) {
            List<String> cells = cells(line);
            if (published.isEmpty()) {
                column = cells.indexOf(option(arguments, "--column"));
            } else {
                int low = Math.floorDiv(Integer.parseInt(cells.get(column)), width) * width;
                cells.set(column, "\"[" + low + ", " + (low + width) + ")\"");
            }
            published.add(String.join(",", cells));
        }
        Files.write(out, published);
    }

    static String option(String[] arguments, String name) {
        return arguments[List.of(arguments).indexOf(name) + 1];
    }

    /** Cells as written, quotes included; a comma between quotes does not separate. */
    static List<String> cells(String line) {
        return new ArrayList<>(List.of(line.split(",(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", -1)));
    }
}
